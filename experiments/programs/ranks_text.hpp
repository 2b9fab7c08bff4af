// Lists of ranks, as people write them ("0-7,16") and counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::programs {

inline constexpr std::uint32_t kMaxRanks = 1u << 20;

/// Returns the ranks of a list; throws InputError, without a file, for what is none, and for ranks from kMaxRanks on.
std::vector<std::uint32_t> parse_ranks(std::string_view text);

/// Returns how many ranks run each of `programs` programs.
std::vector<std::int64_t> ranks_by_program(const std::vector<std::uint32_t>& program_of_rank, std::size_t programs);

/// Returns the list of ascending ranks.
std::string ranks_text(const std::vector<std::uint32_t>& ranks);

}  // namespace manyworlds::experiments::programs
