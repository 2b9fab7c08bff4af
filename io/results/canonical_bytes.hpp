// The results of a run as canonical bytes: everything but /provenance, in one form, so that two runs have the same
// results exactly if they have the same bytes. docs/formats.md specifies the form.
#pragma once

#include <filesystem>
#include <string>

#include "io/results/results.hpp"

namespace manyworlds::io {

std::string canonical_bytes(const Results& results);
std::string canonical_bytes(const std::filesystem::path& results_file);  // throws as read_results()

/// Returns the XXH3-128 of the canonical bytes as 32 hexadecimal digits.
std::string results_digest(const Results& results);

/// Returns whether two values have the same canonical bytes: 0.0 differs from -0.0, and all NaNs are equal.
bool same_value(double left, double right);

}  // namespace manyworlds::io
