#include "farm/cli/options/best_options.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"
#include "experiments/sweep/best.hpp"
#include "farm/run/ticking_line.hpp"
#include "farm/search/space_listing.hpp"
#include "farm/system/console.hpp"

namespace manyworlds::farm::commands {

void add_best_options(cxxopts::Options& options, const char* best_help, const char* gap_help) {
  options.add_options()("best", best_help, cxxopts::value<std::uint32_t>(), "K")(
      "gap", gap_help, cxxopts::value<std::string>(), "SHARE");
}

void ask_for_best(const cxxopts::ParseResult& parsed, experiments::Sweep& sweep) {
  if (parsed.count("best") > 0) {
    const auto best = parsed["best"].as<std::uint32_t>();
    if (best == 0) throw core::InputError("is at least 1", "--best");
    experiments::ask_for_best(sweep, best, "--best");
  }
  if (parsed.count("front") > 0) experiments::ask_for_front(sweep, required(parsed, "front"), "--front");
  if (parsed.count("gap") > 0) experiments::allow_gap(sweep, required(parsed, "gap"), "--gap");
}

SweepOfBest list_space(experiments::Space space, const std::string& file) {
  const bool small = !space.has_any() && space.points() <= static_cast<double>(ListingLimits().points);
  if (space.sweep().best == 0 || space.has_sample() || small) return {std::move(space).list(), {}};
  if (!space.sweep().front.empty())
    throw core::InputError(
        fmt::format("no front is found among {:.3g} points, of which only those with the best bounds of one objective "
                    "would be listed; ask for its best alone, or for the front of a part or a sample of at most {}",
                    space.points(), ListingLimits().points),
        file);
  if (space.has_any())
    print_message("{:.3g} points, and any layers of their stages: their lower bounds, best first\n", space.points());
  else
    print_message("{:.3g} points: their lower bounds, best first\n", space.points());
  ListingProgress progress;
  const TickingLine line([&](double elapsed_s) {
    return fmt::format("{} bounds, {} points listed, {:.0f} s", progress.looked_at.load(), progress.listed.load(),
                       elapsed_s);
  });
  SweepOfBest best;
  best.sweep = list_best(std::move(space), {}, &progress, &best.points);
  return best;
}

}  // namespace manyworlds::farm::commands
