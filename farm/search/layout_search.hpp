// One search: lower bounds of all layouts, a screening of those that these leave open, and rounds that simulate the
// best packet by packet, or as fluids where there is no time for packets. Each round is a run that the same command
// line resumes.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "experiments/sweep/experiment.hpp"
#include "farm/search/layout_bounds.hpp"
#include "farm/search/search_report.hpp"
#include "farm/sweep/sweep_run.hpp"

namespace manyworlds::farm {

struct SearchLimits {
  std::size_t simulations = 64;         // packet by packet, at most; 0: all layouts are screened
  std::chrono::milliseconds budget{0};  // from the start of the search until what it has is reported; 0: no limit
};

class LayoutSearch {
 public:
  using Clock = std::chrono::steady_clock;

  LayoutSearch(RunOptions options, experiments::Sweep sweep, bool share, SearchLimits limits, Zygote& zygote,
               Clock::time_point begin = Clock::now());

  /// Returns the exit code. findings() has what was found, also if the search ended early; nothing if that was before
  /// the first layout was screened, or if none fits.
  int run();
  const std::optional<SearchFindings>& findings() const { return findings_; }
  /// Returns the layouts with the best lower bounds, for a search that ended before any was screened: text or JSON.
  std::string bounds_text(std::size_t k) const;
  nlohmann::ordered_json bounds_json(std::size_t k) const;
  /// Returns the settings of the fastest layout found; only after findings() is set.
  const experiments::Settings& best() const;

 private:
  using Deadline = std::optional<Clock::time_point>;

  int run_in(const std::filesystem::path& directory, const experiments::Sweep& sweep, Deadline deadline,
             std::optional<io::Results>& results);
  int screen_all(const std::filesystem::path& directory);
  int screen(std::size_t count, Deadline deadline);
  int screen_open_layouts();
  SearchFindings screened_findings(std::size_t fitting, io::Results screened,
                                   const std::filesystem::path& directory) const;
  int simulate();
  int simulate_best(std::size_t count, bool is_answer);
  std::size_t missing_in_screening(double rate) const;
  void update_status();
  bool over();
  bool may_be_fluids() const;
  Deadline last_deadline() const;
  Deadline simulation_deadline() const;
  std::filesystem::path search_path(const std::string& name) const {
    return options_.directory.string() + ".search/" + name;
  }

  /// Lets the run directory be a link to the last round that has results, if the search ended before the round that
  /// writes it. A search that goes on replaces the link.
  void link_answer() const;

  RunOptions options_;
  experiments::Sweep sweep_;
  bool share_;
  SearchLimits limits_;
  Zygote& zygote_;
  Clock::time_point begin_;
  SearchEnd end_ = SearchEnd::limit;
  BoundedLayouts bounded_;
  experiments::Sweep screened_;   // the first layouts of `bounded_`
  experiments::Sweep simulated_;  // the best of them
  Simulation simulation_ = Simulation::packets;
  std::optional<SearchFindings> findings_;
  /// The findings with simulated layouts before a longer screening, and its layouts.
  std::optional<std::pair<SearchFindings, experiments::Sweep>> last_simulated_;
};

}  // namespace manyworlds::farm
