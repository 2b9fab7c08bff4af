#include "farm/moves/space_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/best/minimised_objective.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/results/sweep_report.hpp"
#include "farm/search/deferred_ctrl_c.hpp"
#include "farm/search/search_rounds.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/texts/memory_advice.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Space;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // of objectives, which are computed in floating point

/// Returns the axes of an experiment as reports have them: "tp=8 pp=16".
std::string axes_text(const experiments::Sweep& sweep, const experiments::Experiment& experiment) {
  std::string text;
  for (std::size_t axis = 0; axis < sweep.columns.size(); ++axis) {
    const std::string& key = sweep.columns[axis].name;
    const std::string value = experiments::import::value_text(experiment.axes[axis]);
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key.substr(key.rfind('.') + 1), value);
  }
  return text;
}

/// Returns the best minimised objective that any point may have, of a sweep's results; nullopt if nothing is proven.
std::optional<double> proven_bound(const io::Results& results, std::vector<double> values, std::size_t best) {
  const auto gap = std::find_if(results.provenance.begin(), results.provenance.end(),
                                [](const io::Attribute& one) { return one.name == "best_gap"; });
  if (gap == results.provenance.end() || values.size() < best) return std::nullopt;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(best) - 1, values.end());
  return better_by(values[best - 1], std::get<double>(gap->value));
}

std::vector<std::string> set_arguments(const std::vector<std::string>& set) {
  std::vector<std::string> words;
  for (const std::string& one : set) words.emplace_back("--set"), words.push_back(one);
  return words;
}

/// Returns the ids that the experiments of `points` have in a sweep that lists these.
std::vector<std::size_t> ids_of(const std::vector<Space::Point>& points) {
  std::vector<std::size_t> order(points.size()), ids(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  for (std::size_t id = 0; id < order.size(); ++id) ids[order[id]] = id;
  return ids;
}

}  // namespace

SpaceSearch::SpaceSearch(RunOptions options, SpaceDocument document, experiments::Sweep sweep,
                         std::vector<Space::Point> points, bool share, const WalkLimits& limits, Zygote& zygote)
    : options_(std::move(options)),
      document_(std::move(document)),
      sweep_(std::move(sweep)),
      points_(std::move(points)),
      share_(share),
      limits_(limits),
      zygote_(zygote) {
  MANYWORLDS_CHECK(sweep_.best > 0, "the sweep asks for its {} best", sweep_.best);
}

int SpaceSearch::run_in(const std::filesystem::path& directory, const std::string& job,
                        std::optional<io::Results>& results) {
  RunOptions options = options_;
  options.directory = directory;
  // Each round reuses the results of earlier rounds from this store.
  if (share_ && options.store == "none") options.store = search_path("store").string();
  return run_stoppable_sweep(
      options, job,
      [&](const io::Results& run_results, bool complete) {
        if (complete) results = run_results;
      },
      zygote_);
}

int SpaceSearch::run() {
  const DeferredCtrlC no_interruption;
  std::optional<io::Results> results;
  const std::string job = serialize_job(sweep_, {share_, {}});
  sweep_ = {};  // a large sweep takes gigabytes, and the coordinating process builds its own
  return_freed_memory();
  const int swept = run_in(options_.directory, job, results);
  if (results) sweep_ = experiments::deserialize(parse_job(job).sweep);
  if (swept == kExitDrained) print_message("stopped on request; the same line goes on with it\n");
  if (!results) return swept;
  print_lines(summary_text(*results));
  if (none_fits(*results)) {
    std::cout << none_fits_text(*results, sweep_);
    return swept;
  }
  begin(*results);
  if (!findings_) return swept;
  const int moved = move();
  return moved == kExitDone ? swept : moved;
}

/// Begins with the best of the sweep, if it has any.
void SpaceSearch::begin(const io::Results& results) {
  values_ = minimised_objective(results, sweep_.objective);
  const auto best = std::min_element(values_.begin(), values_.end());
  if (best == values_.end() || *best == kInfinity) return;
  findings_.emplace();
  findings_->name = sweep_.name;
  findings_->objective = sweep_.objective;
  findings_->unit = results.experiments.find(sweep_.objective)->unit;
  findings_->gap = sweep_.gap;
  findings_->limits = limits_;
  if (const auto bound = proven_bound(results, values_, sweep_.best))
    findings_->bound = minimised(*bound, sweep_.objective);
  note_best(results, sweep_, static_cast<std::size_t>(best - values_.begin()), options_.directory.string());
  findings_->before = findings_->best;
}

void SpaceSearch::note_best(const io::Results& results, const experiments::Sweep& sweep, std::size_t row,
                            const std::string& run) {
  findings_->best = {results.experiments.find(sweep.objective)->number_at(row),
                     results.experiments.find("step_time_s")->number_at(row), run, static_cast<std::int64_t>(row)};
  findings_->best_axes = axes_text(sweep, sweep.experiments.at(row));
}

/// A point that is better than what was proven of all would be a bug of a bound.
void SpaceSearch::check_bound() const {
  if (!findings_->bound) return;
  const double bound = minimised(*findings_->bound, findings_->objective);
  const double value = minimised(findings_->best.value, findings_->objective);
  MANYWORLDS_CHECK(value >= better_by(bound, kRounding), "experiment {} of {} is better than the bound of the space",
                   findings_->best.experiment, findings_->best.run);
}

/// Walks until the gap is closed or no move is left. Returns the exit code of the rounds.
int SpaceSearch::move() {
  if (points_.empty()) {
    findings_->end = findings_->proven() ? MovesEnd::proven : MovesEnd::listed;
    findings_->run_arguments = set_arguments(document_.set);
    findings_->run_arguments.insert(findings_->run_arguments.begin(),
                                    {"--experiment", std::to_string(findings_->best.experiment)});
    return kExitDone;
  }
  Space space = document_.space();
  space.prepare();
  Neighbourhood neighbourhood(space);
  Walk::Simulated simulated;
  for (std::size_t row = 0; row < values_.size(); ++row)
    if (values_[row] != kInfinity)
      simulated.emplace(neighbourhood.position_of(points_[row], sweep_.experiments[row]), values_[row]);
  const auto first = static_cast<std::size_t>(findings_->best.experiment);
  best_ = neighbourhood.position_of(points_[first], sweep_.experiments[first]);
  Walk walk(space, simulated, limits_);
  int code = kExitDone;
  while (!findings_->proven() && !walk.over()) {
    if (DeferredCtrlC::came()) {
      findings_->end = MovesEnd::stopped;
      code = kExitDrained;
      break;
    }
    const int round = run_round(walk);
    findings_->counts = walk.counts();
    if (round == kExitFailed) code = kExitFailed;
    if (round == kExitDone || round == kExitFailed) continue;
    if (round == kExitDrained) findings_->end = MovesEnd::stopped;
    if (round != kExitDrained) findings_.reset();
    code = round;
    break;
  }
  if (!findings_) return code;
  if (findings_->end != MovesEnd::stopped)
    findings_->end = findings_->proven()                    ? MovesEnd::proven
                     : walk.counts().drawn >= limits_.moves ? MovesEnd::moves
                                                            : MovesEnd::stuck;
  findings_->run_arguments = set_arguments(space.overrides_of(walk.points_of({best_}, space).front()));
  return code;
}

/// Draws a round of neighbours, simulates them, and lets the walk go on.
int SpaceSearch::run_round(Walk& walk) {
  const std::vector<Position> drawn = walk.draw();
  if (drawn.empty()) {
    walk.settle({}, {});
    return kExitDone;
  }
  Space space = document_.space();
  space.ask_for_best({});
  space.prepare();
  const std::vector<Space::Point> points = walk.points_of(drawn, space);
  const std::vector<std::size_t> ids = ids_of(points);
  const experiments::Sweep round = std::move(space).list(points);
  MANYWORLDS_CHECK(round.experiments.size() == drawn.size(), "{} of {} neighbours are valid", round.experiments.size(),
                   drawn.size());
  print_message("moves: {} of {} drawn; simulating {} neighbours, of which the best may be {:.2g} % worse\n",
                walk.counts().drawn, limits_.moves, drawn.size(), 100 * walk.threshold());
  const std::filesystem::path directory =
      search_path(fmt::format("moves-{}-{}", findings_->rounds + 1, key_of_round(serialize(round))));
  std::optional<io::Results> results;
  const int code = run_in(directory, serialize_job(round, {share_, {}}), results);
  if (!results) return code;
  ++findings_->rounds;
  const std::vector<double> by_id = minimised_objective(*results, round.objective);
  std::vector<double> values;
  for (const std::size_t id : ids) values.push_back(by_id[id]);
  const double before = walk.best_value();
  walk.settle(drawn, values);
  if (walk.best_value() < before) {
    const auto best = static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
    note_best(*results, round, ids[best], directory.string());
    best_ = walk.best();
    check_bound();
  }
  const std::optional<double> gap = findings_->gap_of(findings_->best);
  print_message("the best so far: {} {}{}\n", findings_->objective,
                io::with_si_prefix(findings_->best.value, findings_->unit),
                gap ? fmt::format("; another may be better by {:.2f} % at most", 100 * *gap) : "");
  return code;
}

}  // namespace manyworlds::farm
