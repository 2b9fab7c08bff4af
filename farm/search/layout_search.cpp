#include "farm/search/layout_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <tuple>

#include "experiments/tree/scalar.hpp"
#include "experiments/validity/validity.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/search/deferred_ctrl_c.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/texts/memory_advice.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kFirstScreened = 64;    // layouts in the first round of a screening
constexpr std::size_t kFirstWithBudget = 16;  // the same where time is limited
constexpr std::size_t kFewest = 2;            // if these take too long
/// What a run may take to end after it was told to: running simulations may finish
/// (CoordinatorOptions::drain_grace_ms).
constexpr milliseconds kEndOfRun{10'000};
constexpr milliseconds kShortestRun{2'000};  // no run is started for less

std::size_t count_of(const io::Results& results, const std::string& status) {
  const auto counts = results.experiments.counts_of("status");
  const auto found = counts.find(status);
  return found == counts.end() ? 0 : found->second;
}

std::size_t finished_of(const io::Results& results) {
  return results.experiments.rows() - count_of(results, "pending");
}

/// Returns whether a run directory is that of another job: of a search of this space with other limits.
bool holds_another(const std::filesystem::path& directory, const std::string& job) {
  if (std::filesystem::is_symlink(directory)) return false;
  std::ifstream file(directory / "sweep.resolved.json", std::ios::binary);
  return file && std::string(std::istreambuf_iterator<char>(file), {}) != job;
}

}  // namespace

LayoutSearch::LayoutSearch(RunOptions options, experiments::Sweep sweep, bool share, SearchLimits limits,
                           Zygote& zygote, Clock::time_point begin)
    : options_(std::move(options)),
      sweep_(std::move(sweep)),
      share_(share),
      limits_(limits),
      zygote_(zygote),
      begin_(begin) {}

/// Returns when a run is told to end, so that it has ended when the budget is spent; nothing without a budget.
LayoutSearch::Deadline LayoutSearch::last_deadline() const {
  if (limits_.budget.count() == 0) return std::nullopt;
  return begin_ + limits_.budget - std::min(kEndOfRun, limits_.budget / 4);
}

/// Returns whether the search begins nothing more.
bool LayoutSearch::over() {
  if (end_ != SearchEnd::limit) return true;
  if (DeferredCtrlC::came()) end_ = SearchEnd::stopped;
  if (const Deadline last = last_deadline(); last && Clock::now() + kShortestRun > *last && end_ == SearchEnd::limit)
    end_ = SearchEnd::budget;
  return end_ != SearchEnd::limit;
}

/// Runs `sweep` in `directory` until `deadline`. Sets `results` if this process receives them; those of a run that was
/// stopped lack some.
int LayoutSearch::run_in(const std::filesystem::path& directory, const experiments::Sweep& sweep, Deadline deadline,
                         std::optional<io::Results>& results) {
  RunOptions options = options_;
  options.directory = directory;
  // Each round reuses the results of earlier rounds from this store.
  if (share_ && options.store == "none" && !bounded_.order.empty()) options.store = search_path("store").string();
  if (deadline) {
    const auto left = std::max(kShortestRun, std::chrono::duration_cast<milliseconds>(*deadline - Clock::now()));
    options.drain_after = options.drain_after ? std::min(*options.drain_after, left) : left;
  }
  const int code = run_stoppable_sweep(
      options, serialize_job(sweep, {share_, {}}), [&](const io::Results& run_results, bool) { results = run_results; },
      zygote_);
  if (code == kExitDrained && !over() && !(deadline && Clock::now() >= *deadline)) end_ = SearchEnd::stopped;
  return code;
}

int LayoutSearch::run() {
  if (limits_.simulations == 0) return screen_all(options_.directory);
  print_message("bounding {} layouts\n", sweep_.experiments.size());
  Deadline half;  // the other half is for simulations
  if (limits_.budget.count() > 0) half = begin_ + limits_.budget / 2;
  bounded_ = bounded_layouts(sweep_, half);
  if (bounded_.order.empty() && bounded_.unknown == 0) return screen_all(search_path("screening"));
  if (bounded_.order.empty()) return end_ = SearchEnd::budget, kExitDone;
  const DeferredCtrlC no_interruption;
  int code = screen_open_layouts();
  if (findings_ && end_ == SearchEnd::limit) code = simulate();
  // A longer screening whose best there was no time to simulate is no answer beside what was simulated before it.
  if (findings_ && !findings_->simulated && last_simulated_) std::tie(findings_, screened_) = *last_simulated_;
  if (findings_) update_status();
  link_answer();
  if (end_ == SearchEnd::stopped) return kExitDrained;
  return code == kExitDrained ? kExitDone : code;
}

void LayoutSearch::link_answer() const {
  if (!findings_) return;
  const std::filesystem::path& directory = options_.directory;
  const std::filesystem::path answer = findings_->simulated ? findings_->simulated_run : findings_->screening;
  if (answer == directory ||
      (std::filesystem::exists(std::filesystem::symlink_status(directory)) && !std::filesystem::is_symlink(directory)))
    return;
  std::error_code ignored;  // without links, the answer is where the text says
  std::filesystem::remove(directory, ignored);
  std::filesystem::create_directory_symlink(
      std::filesystem::relative(answer, std::filesystem::absolute(directory).parent_path(), ignored), directory,
      ignored);
}

/// Returns findings without simulated layouts, of a screening in `directory`.
SearchFindings LayoutSearch::screened_findings(std::size_t fitting, io::Results screened,
                                               const std::filesystem::path& directory) const {
  SearchFindings result;
  result.layouts = sweep_.experiments.size();
  result.fitting = fitting;
  result.screened = std::move(screened);
  result.screening = directory.string();
  return result;
}

int LayoutSearch::screen_all(const std::filesystem::path& directory) {
  print_message("screening {} layouts analytically\n", sweep_.experiments.size());
  std::optional<io::Results> screened;
  const int code = run_in(directory, sweep_, last_deadline(), screened);
  if (!screened) return code;
  if (none_fits(*screened)) {
    std::cout << none_fits_text(*screened, sweep_);
    return kExitFailed;
  }
  const std::size_t fitting = by_throughput(*screened).size();
  findings_ = screened_findings(fitting, std::move(*screened), directory);
  findings_->search_status.end = end_;
  return end_ == SearchEnd::budget ? kExitDone : code;
}

/// Screens the `count` layouts with the fastest bounds. If that is stopped, an earlier screening remains unless it has
/// less.
int LayoutSearch::screen(std::size_t count, Deadline deadline) {
  print_message("screening {} of {} layouts that fit analytically\n", count, bounded_.order.size());
  experiments::Sweep part =
      part_of(sweep_, {bounded_.order.begin(), bounded_.order.begin() + static_cast<std::ptrdiff_t>(count)});
  auto directory = search_path(fmt::format("screening-{}", count));
  // A search that had less time to list or to bound may have found others.
  if (const std::string job = serialize_job(part, {share_, {}}); holds_another(directory, job)) {
    directory = search_path(fmt::format("screening-{}-{}", count, key_of_round(job)));
    if (share_)
      print_message("{} has other layouts, of a search with another limit; what was simulated there is in the store\n",
                    search_path(fmt::format("screening-{}", count)).string());
  }
  std::optional<io::Results> results;
  const int code = run_in(directory, part, deadline, results);
  if (!results && code == kExitDrained) return code;
  if (!results) return findings_.reset(), code;
  const std::size_t before = findings_ ? by_throughput(findings_->screened).size() : 0;
  if (code == kExitDrained && by_throughput(*results).size() <= before) return code;
  screened_ = std::move(part);
  findings_ = screened_findings(bounded_.order.size(), std::move(*results), directory);
  return code;
}

/// Screens layouts until no bound of another is faster than the fastest, or half of the time is spent: the other half
/// is for packets, without which a ranking means less.
int LayoutSearch::screen_open_layouts() {
  const Clock::time_point now = Clock::now();
  Deadline half = last_deadline();
  if (half) half = now + std::max(kShortestRun, std::chrono::duration_cast<milliseconds>(*half - now)) / 2;
  const std::size_t first = half ? kFirstWithBudget : kFirstScreened;
  for (std::size_t count = std::min(first, bounded_.order.size());;) {
    int code = screen(count, half);
    // If the time was not enough for one of so many, it may be for the best of them and their packets.
    if (!findings_ && code == kExitDrained && !over()) code = screen(std::min(kFewest, count), last_deadline());
    if (!findings_ || code == kExitDrained) return code;
    const std::size_t open = bounded_.faster_than(best_of(throughputs(findings_->screened)));
    if (open <= count || over() || (half && Clock::now() >= *half)) return code;
    count = std::min(open, 2 * count);
  }
}

/// Returns when the simulation of the best is told to end. The first packets have half of what is left, so that there
/// is time for fluids if none of them are ready by then.
LayoutSearch::Deadline LayoutSearch::simulation_deadline() const {
  const Deadline last = last_deadline();
  if (!last || findings_->simulated || !may_be_fluids()) return last;
  const auto half = std::max(kShortestRun, std::chrono::duration_cast<milliseconds>(*last - Clock::now()) / 2);
  return Clock::now() + half - std::min(kEndOfRun, half / 2);
}

/// Returns whether fluids may take the place of packets, which the user may have asked for with a key that needs them.
bool LayoutSearch::may_be_fluids() const {
  if (limits_.budget.count() == 0 || simulation_ == Simulation::fluids) return false;
  experiments::GraphCache graphs;
  const experiments::Sweep first = simulated_part(screened_, {0}, Simulation::fluids);
  return !experiments::find_violation(first.experiments.front().config(), graphs);
}

/// Simulates the `count` best layouts of the screening. If that is stopped, whichever has more of this round and the
/// one before it remains.
int LayoutSearch::simulate_best(std::size_t count, bool is_answer) {
  const std::vector<std::size_t> ranked = by_throughput(findings_->screened);
  experiments::Sweep best =
      simulated_part(screened_, {ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count)}, simulation_);
  const std::string job = serialize_job(best, {share_, {}});
  auto directory = search_path(fmt::format("{}-{}", count, key_of_round(job)));
  if (is_answer && holds_another(options_.directory, job))
    print_message("{} has the answer of a search with other limits; this one's is in {}\n", options_.directory.string(),
                  directory.string());
  else if (is_answer)
    directory = options_.directory;
  if (directory == options_.directory && std::filesystem::is_symlink(directory))
    std::filesystem::remove(directory);  // of a search that ended before its answer
  std::optional<io::Results> results;
  const int code = run_in(directory, best, simulation_deadline(), results);
  if (!results) {
    if (code != kExitDrained) findings_.reset();
    return code;
  }
  const std::size_t before = findings_->simulated ? finished_of(*findings_->simulated) : 0;
  if (code == kExitDrained && finished_of(*results) <= before) return code;
  findings_->simulated = std::move(results);
  findings_->simulated_run = directory.string();
  findings_->simulation = simulation_;
  simulated_ = std::move(best);
  update_status();
  return code;
}

/// Returns how many layouts have to be screened before all are that may be faster than `rate`; 0: they all are.
std::size_t LayoutSearch::missing_in_screening(double rate) const {
  const std::size_t open = bounded_.faster_than(rate), screened = screened_.experiments.size();
  if (open > screened) return open;
  const io::Column& status = *findings_->screened.experiments.find("status");
  for (std::size_t row = 0; row < open; ++row)
    if (status.text_at(row) == "pending") return screened;
  return 0;
}

/// Simulates the best until none of the others can be faster. Without much time, the best of what was screened come
/// before a longer screening, and fluids take the place of packets of which none are ready in time.
int LayoutSearch::simulate() {
  const bool limited_time = limits_.budget.count() > 0;
  const auto next = [&] {
    const std::size_t layouts = by_throughput(findings_->screened).size();
    const SearchStatus so_far = findings_->simulated ? findings_->search_status : SearchStatus();
    if (limited_time && so_far.simulated > 0 && so_far.settled()) return so_far.simulated;
    return next_round(so_far, layouts, limits_.simulations, limited_time);
  };
  for (std::size_t count = next(); count > 0 && !over();) {
    print_message("simulating the best {} {}\n", count, words_of(simulation_));
    if (const int code = simulate_best(count, false); !findings_ || code == kExitDrained) {
      if (!findings_ || over()) return code;
      if (!findings_->simulated && !may_be_fluids()) return code;
      if (!findings_->simulated) simulation_ = Simulation::fluids;
      continue;
    }
    const double best = best_of(throughputs(*findings_->simulated));
    const std::size_t after = next();
    const std::size_t missing = best > 0 ? missing_in_screening(best) : 0;
    if (missing > 0 && !(limited_time && after > count)) {
      last_simulated_.emplace(*findings_, screened_);
      const int code = screen(missing, last_deadline());
      if (!findings_) return code;
      if (!over()) continue;
      return code;
    }
    if (after == count) return simulate_best(count, true);
    count = after;
  }
  return kExitDone;
}

nlohmann::ordered_json LayoutSearch::bounds_json(std::size_t k) const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t row = 0; row < std::min(k, bounded_.order.size()); ++row) {
    const experiments::Experiment& one = sweep_.experiments[bounded_.order[row]];
    std::string layout;
    for (std::size_t axis = 0; axis < sweep_.columns.size(); ++axis) {
      const std::string& key = sweep_.columns[axis].name;
      const std::string name = key.substr(key.rfind('.') + 1);
      layout += fmt::format("{}{}={}", axis == 0 ? "" : " ", name, experiments::import::value_text(one.axes[axis]));
    }
    rows.push_back({{"layout", layout}, {"tokens_per_s_per_gpu_at_most", bounded_.rates[row]}});
  }
  return {{"fidelity", "bounds"},
          {"assumed", sweep_.assumed},
          {"ended", end_ == SearchEnd::stopped ? "stopped" : "budget"},
          {"fitting", bounded_.order.size()},
          {"not_looked_at", bounded_.unknown},
          {"combinations_not_checked", sweep_.unvisited},
          {"top", {{"rows", rows}}}};
}

std::string LayoutSearch::bounds_text(std::size_t k) const {
  const std::size_t layouts = sweep_.experiments.size();
  std::string text = bounded_.unknown == 0
                         ? fmt::format("{} of {} layouts fit", bounded_.order.size(), layouts)
                         : fmt::format("{} of the {} layouts that there was time to look at fit, of {}",
                                       bounded_.order.size(), layouts - bounded_.unknown, layouts);
  if (sweep_.unvisited > 0) text += fmt::format("; {} combinations were not checked", sweep_.unvisited);
  text +=
      "; none was screened before the search ended, these are the best by their lower bounds; the same line with a "
      "longer --budget continues\n\n";
  const nlohmann::ordered_json found = bounds_json(k);
  std::size_t place = 0;
  for (const auto& row : found.at("top").at("rows"))
    text += fmt::format("{:2}  at most {:.1f} tokens/s/GPU  {}\n", ++place,
                        row.at("tokens_per_s_per_gpu_at_most").get<double>(), row.at("layout").get<std::string>());
  return text + io::assumed_text(sweep_.assumed);
}

const experiments::Settings& LayoutSearch::best() const {
  const io::Results& results = final_results(*findings_);
  const bool packets = &results != &findings_->screened;
  const experiments::Sweep& sweep = packets ? simulated_ : screened_.experiments.empty() ? sweep_ : screened_;
  return sweep.experiments.at(by_throughput(results).front()).settings;
}

/// Updates what is known of the layouts that were not simulated, by their analytic rates or, where these are not known,
/// by their bounds.
void LayoutSearch::update_status() {
  SearchFindings& found = *findings_;
  found.search_status = SearchStatus();
  const std::vector<std::size_t> ranked = by_throughput(found.screened);
  const std::vector<double> rates = throughputs(found.screened, ranked);
  std::vector<double> simulated, others;
  std::size_t unfinished = 0;
  if (found.simulated) {
    simulated = throughputs(*found.simulated);
    for (std::size_t row = 0; row < simulated.size(); ++row)
      if (found.simulated->experiments.find("status")->text_at(row) == "pending")
        ++unfinished, others.push_back(rates[row]);
  }
  for (std::size_t row = 0; row < bounded_.rates.size(); ++row)
    if (row >= found.screened.experiments.rows() ||
        found.screened.experiments.find("status")->text_at(row) == "pending")
      others.push_back(bounded_.rates[row]);
  found.search_status = search_status(rates, simulated, others);
  found.search_status.unknown = bounded_.unknown;
  found.search_status.unlisted = sweep_.unvisited;
  found.search_status.simulated -= unfinished;
  found.search_status.end = end_;
}

}  // namespace manyworlds::farm
