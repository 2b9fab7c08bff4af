// The answer of a run as canonical bytes: everything but /provenance, in one form, so that "the same answer" is
// "the same bytes". docs/formats.md has the form.
#pragma once

#include <filesystem>
#include <string>

#include "io/results/results.hpp"

namespace manyworlds::io {

std::string answer_bytes(const Results& results);
std::string answer_bytes(const std::filesystem::path& results_file);  // throws as read_results()

/// XXH3-128 of the answer's bytes, 32 hexadecimal digits.
std::string answer_digest(const Results& results);

/// Equal as the answer's bytes are: 0.0 is not -0.0, and a NaN is a NaN.
bool same_value(double left, double right);

}  // namespace manyworlds::io
