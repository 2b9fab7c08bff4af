// Decides when enough of a ranking by upper bounds was simulated. The analytic rate of a layout bounds its packet rate
// from above, so a layout is eliminated once the packet rate of another exceeds its analytic rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::farm {

/// Why a search simulated no more layouts.
enum class SearchEnd : std::uint8_t {
  limit,    // nothing was left, or as many were simulated as may be
  budget,   // the time was over
  stopped,  // on request
};

/// What the simulated top of a ranking proves about the remaining layouts.
struct SearchStatus {
  std::size_t simulated = 0;
  std::size_t open = 0;        // layouts that were not simulated and may be faster than the fastest that was
  double max_gain = 0;         // how much faster such a layout may be: 0.02 is 2 %
  std::size_t unknown = 0;     // layouts that there was no time to look at
  std::uint64_t unlisted = 0;  // combinations that there was no time to check
  SearchEnd end = SearchEnd::limit;
  bool settled() const { return open == 0 && unknown == 0 && unlisted == 0; }
};

/// Returns the highest rate, without the NaN of layouts that did not run; 0 if none did.
double best_of(const std::vector<double>& rates);

/// `bounds`: upper bounds on the layouts' rates, highest first; `simulated`: packet rates of the first layouts, NaN for
/// one that did not run; `others`: upper bounds of layouts that are neither in `bounds` nor known to be slower.
SearchStatus search_status(const std::vector<double>& bounds, const std::vector<double>& simulated,
                           const std::vector<double>& others = {});

/// Returns how many layouts of the ranking to simulate in all after `so_far`, at most `max_layouts`: the open ones are
/// added, but the number at most doubles, since each round eliminates some. The first round simulates kFirstRound, or
/// if time is limited a few of these after the other, so that the best are ready when it is over.
inline constexpr std::size_t kFirstRound = 8;
std::size_t next_round(const SearchStatus& so_far, std::size_t layouts, std::size_t max_layouts,
                       bool limited_time = false);

/// Returns what tells rounds of one search apart in the names of their run directories, by what they simulate.
std::string key_of_round(const std::string& simulated);

}  // namespace manyworlds::farm
