// How many tokens each response of a rollout has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/phase_files/phases_file.hpp"

namespace manyworlds::experiments::phases {

/// Returns the tokens of `count` responses, in an order drawn from the seed. Lognormal and counted lengths are taken
/// one from each of as many equal parts of their distribution, so that their mean is the distribution's (but for
/// max_tokens, to which longer ones are cut). `table` has the text of the file; it is read for that form alone. Throws
/// InputError for a table that is none.
std::vector<std::int64_t> response_tokens(const ResponseLengths& lengths, std::int64_t count, const std::string& table);

/// Returns the samples of each of `replicas`: blocks of equal length, in order, of which the first have one more if
/// they do not divide evenly. As the responses of a prompt follow each other, they are on one replica mostly.
std::vector<std::vector<std::int64_t>> dealt_out(const std::vector<std::int64_t>& tokens, std::int64_t replicas);

}  // namespace manyworlds::experiments::phases
