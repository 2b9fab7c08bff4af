// The points of a sweep: their settings, whether they are valid, and lists of them.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "experiments/catalog/cluster_files.hpp"
#include "experiments/config/inputs.hpp"
#include "experiments/key_contents/named_tables.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/settings/network_lengths.hpp"
#include "experiments/settings/required_settings.hpp"
#include "experiments/sweep/best.hpp"
#include "experiments/sweep/positions.hpp"
#include "experiments/sweep/sweep_reader.hpp"
#include "experiments/text/text.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;

constexpr std::size_t kMaxInputBytes = 64u << 20;     // of all files of a sweep, which are serialized with it
constexpr std::size_t kMaxNoted = 10'000;             // points of which all rules are looked at for a message
constexpr std::size_t kMaxProgramBytes = 256u << 20;  // the same with a program

/// Reads a file that a setting names; programs are long, and may be compressed.
std::string read_input(const std::string& key, const std::string& path) {
  return key == kProgramFile ? import::read_table_text(path, kMaxProgramBytes) : import::read_text(path);
}

/// Returns a note if kernels have measured times, and nothing says of which GPU; otherwise empty.
std::string unknown_gpu_note(const Settings& settings, const ExperimentConfig& config) {
  const bool has_times = config.timed_programs && config.timed_programs->sources.measured > 0;
  if (!has_times || settings.has_below(kMeasuredOn)) return "";
  return fmt::format(
      "{} does not say on which GPU its times were measured: they are taken as they are on any; {} says it",
      settings.text(kProgramFile), kMeasuredOn);
}

}  // namespace

/// Returns the assignments of every point: sections before keys inside them, and overrides after axes of the same
/// depth.
std::vector<SweepReader::Assignment> SweepReader::assignments() const {
  std::vector<Assignment> all;
  for (std::size_t f = 0; f < factors_.size(); ++f)
    for (const Axis& axis : factors_[f].axes) all.push_back({&axis.target, f, &axis, nullptr});
  for (const Override& one : overrides_) all.push_back({&one.target, 0, nullptr, &one.value});
  const auto depth = [](const Assignment& one) {
    return std::count(one.target->path.begin(), one.target->path.end(), '.');
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return depth(a) < depth(b); });
  return all;
}

/// Gives networks the tokens that follow from the model's. Fails at the place where these were written.
std::string SweepReader::fit_networks_of(const Chosen& chosen, Settings& settings) const {
  try {
    return fit_networks(settings);
  } catch (const InputError& error) {
    const std::string key = "model.sequence";
    const import::Node* place = nullptr;
    if (const auto base = places_.find(key); base != places_.end()) place = &base->second;
    for (const Assignment& one : assignments_)
      if (one.target->path == key) place = one.axis ? &one.axis->values[chosen[one.factor]] : one.override_value;
    (place == nullptr ? top_ : *place).fail(error.what());
  }
}

/// Returns the settings of a point, with neutral values of `open` keys; what was assumed goes to `assumed`, if that is
/// not null.
Settings SweepReader::resolve(const Chosen& chosen, Places* places, OpenKeys open, Assumptions* assumed,
                              CalibrationBorrower& borrower) const {
  Settings settings = start_;
  Assigner assigner(catalog_, settings, places, practice());
  for (const Assignment& one : assignments_)
    assigner.assign(*one.target, one.axis ? one.axis->values[chosen[one.factor]] : *one.override_value);
  count_listed_nodes(settings);
  open.make_neutral(settings);
  Assumptions filled = assume(settings, catalog_, practice());
  if (const std::string note = fit_networks_of(chosen, settings); !note.empty())
    filled.model_note += (filled.model_note.empty() ? "" : "; ") + note;
  if (assumed != nullptr) *assumed = std::move(filled);
  derive(settings);
  if (const std::string missing = borrower.borrow(settings, catalog_); !missing.empty())
    top_.fail(
        fmt::format("'{}' is missing; protocol: calibrated needs every library_ constant of its GPU except those of "
                    "in-switch reduction",
                    missing));
  return settings;
}

/// Fails at the place where the user wrote `key`, or the nearest section around it.
void SweepReader::fail_at(const Chosen& chosen, const std::string& key, const std::string& what) {
  Places places = places_;
  resolve(chosen, &places, {}, nullptr, borrower_);
  std::string path = key;
  while (!path.empty() && !places.count(path)) path.resize(path.rfind('.') == std::string::npos ? 0 : path.rfind('.'));
  const auto found = places.find(path);
  (found == places.end() ? top_ : found->second).fail(what);
}

/// Adds the files that these settings name to the sweep. An invalid file is an error even if other points of the sweep
/// do not use it.
void SweepReader::add_inputs(const Chosen& chosen, const Settings& settings) {
  for (const NamedFile& file : named_files(settings)) {
    const auto& [key, path, required] = file;
    if (path.empty() && required) fail_at(chosen, key, fmt::format("'{}' is missing; give the path of a file", key));
    if (path.empty() || inputs_->count(path) > 0) continue;
    std::string text;
    try {
      text = read_input(key, (std::filesystem::path(file_).parent_path() / path).string());
    } catch (const InputError& error) {
      fail_at(chosen, key, fmt::format("'{}': {}", key, error.what()));
    }
    check_file(file, text);
    input_bytes_ += text.size();
    const std::size_t most = has_programs(settings) ? kMaxProgramBytes : kMaxInputBytes;
    if (input_bytes_ > most)
      fail_at(chosen, key,
              fmt::format("'{}': with it, the files that the sweep names have more than {} bytes together", key, most));
    inputs_->emplace(path, std::move(text));
  }
}

/// Adds the GPU on which the times of given programs were measured, if their file names it and the settings do not.
void SweepReader::add_measured_gpu(Settings& settings) const {
  const auto text = inputs_->find(settings.text(kProgramFile));
  if (text == inputs_->end() || settings.has_below(kMeasuredOn)) return;
  const std::string gpu = programs::measured_gpu(text->second, text->first);
  if (gpu.empty()) return;
  import::Node name;
  name.kind = import::Node::Kind::scalar;
  name.text = gpu;
  name.file = std::make_shared<const std::string>(text->first);
  name.line = 1;
  Assigner(catalog_, settings, nullptr).assign(find_key(kMeasuredOn, name), name);
}

void SweepReader::note_unmeasured(const Chosen& chosen, const Settings& settings) {
  for (const std::string& kernel : unmeasured_kernels(settings, *inputs_)) {
    if (unmeasured_.empty()) unmeasured_at_ = chosen;
    unmeasured_.insert(kernel);
  }
}

/// Refuses a sweep that requires measured times but lacks some, before any simulation begins.
void SweepReader::fail_unmeasured() {
  constexpr std::size_t kMaxShown = 40;
  std::vector<std::string> first(unmeasured_.begin(), unmeasured_.end());
  const std::size_t more = first.size() > kMaxShown ? first.size() - kMaxShown : 0;
  first.resize(first.size() - more);
  fail_at(
      unmeasured_at_, "cluster.gpu.measured_only",
      fmt::format("'cluster.gpu.measured_only': {} kernels are in no row of 'cluster.gpu.measured_kernels': {}{}; `run "
                  "--kernels --set cluster.gpu.measured_only=false` writes rows to fill in",
                  unmeasured_.size(), fmt::join(first, "; "), more > 0 ? fmt::format("; and {} more", more) : ""));
}

/// Records assumed values; a network-only sweep reports those of the network only.
void SweepReader::note_assumed(Assumptions assumptions) {
  if (!inputs_->programs->is_empty()) {
    assumptions.model_note.clear();
    assumptions.values.erase_if(
        [](const auto& one) { return one.first.starts_with("model.") || one.first.starts_with("strategy."); });
  }
  if (options_.scope == Scope::network) {
    assumptions.model_note.clear();
    assumptions.values.erase_if([](const auto& one) {
      return !one.first.starts_with("collectives.") && !one.first.starts_with("topology.") &&
             !one.first.starts_with("transport");
    });
  }
  assumed_.add(assumptions);
}

/// Returns a note about the further rules that an invalid experiment violates.
std::string SweepReader::other_violations(const Settings& settings) {
  const RuleViolations all = find_violations(config_of(settings, inputs_), graphs_, options_.scope);
  std::vector<std::string> others;
  for (std::size_t i = 1; i < all.broken.size(); ++i) others.push_back(all.broken[i].rule);
  return others.empty() ? ""
                        : fmt::format("; it violates {} too (`manyworlds explain` lists all)", fmt::join(others, ", "));
}

/// Throws InputError for what the point lacks, and reads the files that it names.
void SweepReader::require_all(const Chosen& chosen, const Settings& settings) {
  if (!lacks_no_more(settings, complete_))
    if (const auto [key, what] = missing_required(settings, options_.scope); !key.empty()) fail_at(chosen, key, what);
  complete_ = settings;
  add_inputs(chosen, settings);
}

void SweepReader::visit(const Chosen& chosen) {
  Assumptions assumed;
  Settings settings = resolve(chosen, nullptr, {}, &assumed, borrower_);
  require_all(chosen, settings);
  add_measured_gpu(settings);
  const auto row = columns_->row(chosen, settings);
  for (const Constraint& constraint : constraints_)
    if (!constraint.holds(settings)) {
      sweep_.excluded.push_back({row, "where", constraint.text()});
      return;
    }
  if (const std::string missing = missing_positions(settings, options_.scope); !missing.empty()) {
    if (sweep_.single) fail_at(chosen, "model.sequence", "'model.sequence': " + missing);
    sweep_.excluded.push_back({row, kPositionsRule, missing});
    return;
  }
  const ExperimentConfig& config = config_reader_.read(settings, inputs_);
  const auto violation = find_violation(config, graphs_, options_.scope);
  if (!violation) {
    note_unmeasured(chosen, settings);
    note_assumed(std::move(assumed));
    assumed_.note(unused_oversubscription_note(settings));
    assumed_.note(unused_channels_note(settings));
    assumed_.note(msccl_note(settings, *inputs_));
    assumed_.note(tuner_note(settings, *inputs_));
    for (const std::string& note : program_notes(settings, *inputs_)) assumed_.note(note);
    assumed_.note(tensor_over_nodes_note(settings));
    assumed_.note(unused_fabric_note(settings));
    assumed_.note(further_positions_note(settings));
    assumed_.note(unknown_gpu_note(settings, config));
    sweep_.experiments.push_back(
        {static_cast<std::uint32_t>(sweep_.experiments.size()), row, std::move(settings), inputs_});
    return;
  }
  if (options_.keep_refused)
    note_assumed(std::move(assumed)),
        sweep_.refused.push_back({static_cast<std::uint32_t>(sweep_.refused.size()), row, settings, inputs_});
  else if (sweep_.single)
    fail_at(chosen, violation->key,
            fmt::format("'{}' violates rule {}: {}{}", violation->key, violation->rule, violation->reason,
                        other_violations(settings)));
  note_broken(settings);
  sweep_.excluded.push_back({row, violation->rule, violation->reason});
}

/// Notes what an invalid point breaks besides its first rule, until a point is valid or no rule is left.
void SweepReader::note_broken(const Settings& settings) {
  const bool is_over = sweep_.excluded.size() > kMaxNoted || !sweep_.experiments.empty();
  if (is_over || (broken_by_all_ && broken_by_all_->empty())) return;
  RuleViolations found = find_violations(config_of(settings, inputs_), graphs_, options_.scope);
  if (!broken_by_all_) {
    broken_by_all_ = std::move(found.broken);
    return;
  }
  std::erase_if(*broken_by_all_, [&](const RuleViolation& one) {
    return std::none_of(found.broken.begin(), found.broken.end(),
                        [&](const RuleViolation& other) { return other.rule == one.rule; });
  });
}

/// Says first which rule excludes all combinations that a condition leaves, or else most; then how many each excludes
/// that is the first to.
void SweepReader::fail_empty() const {
  std::map<std::string, std::size_t> times;
  for (const Excluded& one : sweep_.excluded) ++times[one.rule];
  std::vector<std::pair<std::string, std::size_t>> rules(times.begin(), times.end());
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const bool of_all = broken_by_all_ && !broken_by_all_->empty();
  const std::string& leading = of_all ? broken_by_all_->front().rule : rules.front().first;
  const auto first = std::find_if(sweep_.excluded.begin(), sweep_.excluded.end(),
                                  [&](const Excluded& one) { return one.rule == leading; });
  const std::string reason = first != sweep_.excluded.end() ? first->reason : broken_by_all_->front().reason;
  std::vector<std::string> counts;
  for (const auto& [rule, count] : rules) counts.push_back(fmt::format("{} {}", rule, count));
  const auto where =
      leading == "where" ? std::find(sweep_.where.begin(), sweep_.where.end(), reason) : sweep_.where.end();
  const import::Node& place =
      where == sweep_.where.end() ? axes_place_ : conditions_[static_cast<std::size_t>(where - sweep_.where.begin())];
  place.fail(fmt::format("no valid point: {} ({}); all {} combinations are excluded: {}", reason, leading,
                         sweep_.excluded.size(), fmt::join(counts, ", ")));
}

/// Lets all points share the settings of the first: what a point sets as that one has it takes no memory and no time.
void SweepReader::share_settings() {
  start_ = base_;
  try {
    Settings first = resolve(Chosen(factors_.size(), 0), nullptr, {}, nullptr, borrower_);
    first.share();
    start_.share_with(first);
  } catch (const InputError&) {  // is said again if that point is visited
    start_.share();
  }
}

void SweepReader::visit_point(std::uint64_t point) {
  Chosen chosen(factors_.size(), 0);
  for (std::size_t f = factors_.size(); f-- > 0; point /= factors_[f].size()) chosen[f] = point % factors_[f].size();
  visit(chosen);
}

/// Visits points in random order until `wanted` of them are valid, `limit` were visited or the time is over. The
/// results are in the order of the grid, as if it had been walked. Returns how many points were visited.
std::uint64_t SweepReader::visit_drawn(const GridPermutation& drawn, std::uint64_t limit, std::size_t wanted) {
  constexpr std::uint64_t kPointsPerLook = 16;  // at the clock
  std::vector<std::uint64_t> valid, left_out;
  std::uint64_t place = 0;
  for (; place < limit && valid.size() < wanted; ++place) {
    if (options_.is_over && place % kPointsPerLook == 0 && options_.is_over()) break;
    const std::uint64_t point = drawn.at(place);
    visit_point(point);
    (sweep_.experiments.size() > valid.size() ? valid : left_out).push_back(point);
  }
  sort_by(valid, sweep_.experiments);
  sort_by(left_out, sweep_.excluded);
  for (std::size_t id = 0; id < sweep_.experiments.size(); ++id)
    sweep_.experiments[id].id = static_cast<std::uint32_t>(id);
  return place;
}

/// Draws points until enough of them are valid.
void SweepReader::visit_sample(std::uint64_t points) {
  const auto wanted = static_cast<std::size_t>(sample_->experiments);
  const std::uint64_t limit = std::min<std::uint64_t>(points, options_.max_points);
  const GridPermutation drawn(points, static_cast<std::uint64_t>(sample_->seed));
  const std::uint64_t visited = visit_drawn(drawn, limit, wanted);
  const std::size_t valid = sweep_.experiments.size();
  if (valid < wanted) sweep_.unvisited = limit - visited;  // the time was over
  if (valid == wanted || valid == 0 || visited < limit) return;
  sample_->place.fail(
      limit == points
          ? fmt::format("'sample.experiments' is {}, and the sweep has {} valid points; take fewer", wanted, valid)
          : fmt::format("'sample.experiments' is {}, and of {} points drawn {} are valid; narrow the "
                        "axes, or take fewer",
                        wanted, limit, valid));
}

/// Visits all points, in random order if the time may be over before the last.
void SweepReader::visit_all(std::uint64_t points) {
  if (options_.is_over && !options_.keep_refused)
    sweep_.unvisited = points - visit_drawn({points, 1}, points, points);
  else
    for (std::uint64_t point = 0; point < points; ++point) visit_point(point);
}

std::size_t SweepReader::value_of_any(std::size_t factor, const std::string& value) {
  std::vector<import::Node>& values = factors_[factor].axes.front().values;
  const auto known = std::find_if(values.begin(), values.end(), [&](const auto& node) { return node.text == value; });
  if (known != values.end()) return static_cast<std::size_t>(known - values.begin());
  values.push_back(values.front());
  values.back().text = value;
  return values.size() - 1;
}

/// Returns how many points the axes make. Throws InputError if these are too many to be listed or drawn from.
std::uint64_t SweepReader::points_to_list() const {
  const std::uint64_t limit = sample_ ? GridPermutation::kMaxPoints : options_.max_points;
  std::uint64_t points = 1;
  for (const Factor& factor : factors_) {
    if (const Axis& axis = factor.axes.front(); axis.any)
      axis.place.fail(
          fmt::format("axis '{}' may be any where the best are asked for (best: K), without a sample", axis.key));
    if (points > limit / factor.size())
      axes_place_.fail(fmt::format("the axes make more than {} points; split the sweep{}", limit,
                                   sample_ ? ""
                                           : ", draw from it with 'sample: {experiments: N}', or ask for its best "
                                             "with 'best: K'"));
    points *= factor.size();
  }
  if (sample_ && sample_->experiments == 0)
    throw InputError("needs 'sample.experiments', which is given nowhere", "--set sample.seed");
  if (sample_ && factors_.empty()) sample_->place.fail("'sample' draws from axes, and there are none");
  return points;
}

void SweepReader::prepare_points() {
  assignments_ = assignments();
  columns_.emplace(factors_, base_, catalog_);
  sweep_.columns = columns_->columns();
  share_settings();
}

void SweepReader::prepare() {
  prepare_points();
  Chosen chosen(factors_.size(), 0);
  for (std::size_t factor = 0; factor < factors_.size(); ++factor)
    for (std::size_t value = factor == 0 ? 0 : 1; value < factors_[factor].size(); ++value) {
      chosen[factor] = value;
      require_all(chosen, resolve(chosen, nullptr, {}, nullptr, borrower_));
      chosen[factor] = 0;
    }
}

Settings SweepReader::settings_of(const Chosen& chosen, OpenKeys open, CalibrationBorrower& borrower) const {
  Settings settings = resolve(chosen, nullptr, open, nullptr, borrower);
  add_measured_gpu(settings);
  return settings;
}

Sweep SweepReader::list() {
  const std::uint64_t points = points_to_list();
  prepare_points();
  sample_ ? visit_sample(points) : visit_all(points);
  return listed();
}

Sweep SweepReader::list(const std::vector<Chosen>& points) {
  for (const Chosen& point : points) visit(point);
  return listed();
}

Sweep SweepReader::listed() {
  if (!unmeasured_.empty()) fail_unmeasured();
  if (sweep_.experiments.empty() && sweep_.unvisited == 0 && !options_.keep_refused) fail_empty();
  sweep_.inputs = inputs_;
  check_no_model_beside_programs();
  check_needs(ordered_column(sweep_.objective), "objective", objective_place_);
  if (!sweep_.front.empty()) check_needs(ordered_column(sweep_.front), "front", front_place_);
  check_front_of_batches();
  sweep_.assumed = assumed_.line();
  return std::move(sweep_);
}

/// Fails where keys of a model or a strategy are given, and all experiments have programs in their place.
void SweepReader::check_no_model_beside_programs() const {
  if (!changes_.empty()) return;  // programs that follow from a phase's model stand beside it
  const auto is_given = [](const Experiment& one) { return has_programs(one.settings); };
  if (sweep_.experiments.empty() || !std::all_of(sweep_.experiments.begin(), sweep_.experiments.end(), is_given))
    return;
  const auto refuse = [](const std::string& key, const import::Node& place) {
    const std::string section = key.substr(0, key.find('.'));
    if (section == "model" || section == "strategy")
      place.fail(
          fmt::format("'{}' has no effect beside '{}', whose programs take the place of a model and a strategy; "
                      "leave it out",
                      key, kProgramFile));
  };
  for (const auto& [key, place] : places_) refuse(key, place);
  for (const Assignment& one : assignments_)
    refuse(one.target->path, one.axis != nullptr ? one.axis->place : *one.override_value);
}

/// Fails early if no experiment can have a value to rank by, which would otherwise show only after all simulations.
void SweepReader::check_needs(const Objective& column, const char* key, const import::Node& place) const {
  const bool known = std::any_of(sweep_.experiments.begin(), sweep_.experiments.end(), [&](const Experiment& one) {
    const auto has = [&](const std::string& setting) { return one.settings.count(setting) > 0; };
    return std::any_of(column.needs.begin(), column.needs.end(),
                       [&](const auto& keys) { return std::all_of(keys.begin(), keys.end(), has); });
  });
  if (known || column.needs.empty() || sweep_.experiments.empty()) return;
  std::vector<std::string> lists;
  for (const auto& keys : column.needs) lists.push_back(fmt::format("{}", fmt::join(keys, " and ")));
  place.fail(fmt::format("'{}' {} needs {}, which no experiment has; give a value as in --set {}=…", key, column.name,
                         fmt::join(lists, ", or "), column.needs.front().front()));
}

/// Fails where a front against the batch has none to choose from.
void SweepReader::check_front_of_batches() const {
  const auto is_batch = [](const AxisColumn& column) { return column.name == kFrontOfBatches; };
  if (sweep_.front != kFrontOfBatches || std::any_of(sweep_.columns.begin(), sweep_.columns.end(), is_batch)) return;
  front_place_.fail(fmt::format("'front' {} needs it as an axis, as in 'axes: {{{}: [128, 256, 512]}}'",
                                kFrontOfBatches, kFrontOfBatches));
}

}  // namespace manyworlds::experiments
