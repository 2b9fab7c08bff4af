// From the text of a sweep to its experiments: base, overrides, axes, constraints, rules, in this order.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "experiments/catalog/calibration.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/config/inputs.hpp"
#include "experiments/rules/validity.hpp"
#include "experiments/settings/required_settings.hpp"
#include "experiments/sweep/best.hpp"
#include "experiments/sweep/columns.hpp"
#include "experiments/sweep/constraint.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/sweep/measured_step.hpp"
#include "experiments/sweep/sampling.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/scalar.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using import::Entry;
using import::Node;

/// What a point assigns: the value of an axis of a factor, or of an override.
struct Assignment {
  const Target* target = nullptr;
  std::size_t factor = 0;
  const Axis* axis = nullptr;
  const Node* override_value = nullptr;
};

void clear_lines(Node& node) {
  node.line = 0;  // an override has no lines; its name identifies it
  for (Node& item : node.items) clear_lines(item);
  for (Entry& entry : node.entries) entry.line = 0, clear_lines(entry.value);
}

constexpr const char* kSample = "sample";
constexpr const char* kAssume = "assume";
constexpr std::size_t kMaxInputBytes = 64u << 20;  // of all files of a sweep, which are serialized with it

class Reader {
 public:
  Reader(const std::string& file, const Catalog& catalog, const ReadOptions& options)
      : file_(file), catalog_(catalog), options_(options) {}
  Sweep read(const std::string& text, const std::vector<std::string>& overrides);

 private:
  void read_top(const Node& root);
  void read_overrides(const std::vector<std::string>& overrides);
  void read_override(const std::string& given);
  void check_overrides() const;
  void read_assume_override(const std::string& given);
  void read_assume(const Node& node);
  Practice practice() const { return practice_.value_or(options_.practice); }
  void expand();
  void share_settings();
  void visit_point(std::uint64_t point, const Columns& columns, GraphCache& graphs);
  std::uint64_t visit_drawn(const GridPermutation& drawn, std::uint64_t limit, std::size_t wanted,
                            const Columns& columns, GraphCache& graphs);
  void visit_sample(std::uint64_t points, const Columns& columns, GraphCache& graphs);
  void visit_all(std::uint64_t points, const Columns& columns, GraphCache& graphs);
  void check_objective() const;
  std::vector<Assignment> assignments() const;
  Settings resolve(const std::vector<std::size_t>& chosen, Places* places, Assumptions* assumed = nullptr) const;
  [[noreturn]] void fail_at(const std::vector<std::size_t>& chosen, const std::string& key,
                            const std::string& what) const;
  void add_inputs(const std::vector<std::size_t>& chosen, const Settings& settings);
  void visit(const std::vector<std::size_t>& chosen, const Columns& columns, GraphCache& graphs);
  std::string other_violations(const Settings& settings, GraphCache& graphs) const;
  void note_assumed(Assumptions assumptions);
  void note_unmeasured(const std::vector<std::size_t>& chosen, const Settings& settings);
  [[noreturn]] void fail_unmeasured() const;
  [[noreturn]] void fail_empty() const;

  struct Override {
    Target target;
    Node value;
  };

  std::string file_;
  const Catalog& catalog_;
  ReadOptions options_;
  Sweep sweep_;
  Settings base_;
  Settings start_;  // base_, sharing the block of the first point
  Places places_;
  mutable CalibrationBorrower borrower_;
  ConfigReader config_reader_;
  Settings complete_;  // the last point that lacks nothing
  Node top_, axes_place_, objective_place_;
  std::vector<Factor> factors_;
  std::vector<Override> overrides_;
  std::vector<Assignment> assignments_;
  std::vector<Constraint> constraints_;
  std::optional<Sample> sample_;
  std::optional<Practice> practice_;
  AssumedValues assumed_;
  std::set<std::string> unmeasured_;  // kernels without a measured time
  std::vector<std::size_t> unmeasured_at_;
  std::shared_ptr<Inputs> inputs_ = std::make_shared<Inputs>();
  std::size_t input_bytes_ = 0;
};

Sweep Reader::read(const std::string& text, const std::vector<std::string>& overrides) {
  const Node root = import::parse_yaml(text, file_);
  sweep_.text = text;
  sweep_.overrides = overrides;
  for (const std::string& given : overrides) read_assume_override(given);
  read_top(root);
  read_overrides(overrides);
  expand();
  check_objective();
  sweep_.assumed = assumed_.line();
  return std::move(sweep_);
}

void Reader::read_top(const Node& root) {
  if (root.kind != Node::Kind::mapping)
    root.fail(fmt::format("a sweep must be a mapping with 'base', not {}", import::describe(root)));
  const std::vector<std::string> known{"name",  "assume", "base",      "axes", "zip",
                                       "where", "sample", "objective", "best", "measured"};
  for (const Entry& entry : root.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      const bool inner =
          find_section(config_schema().subsections, entry.key) || find_option(config_schema().options, entry.key);
      throw InputError(fmt::format("unknown key '{}'{}", entry.key,
                                   inner ? "; it belongs under 'base'" : suggestion(entry.key, known)),
                       file_, entry.line);
    }
  top_.file = root.file;
  top_.line = root.line;
  const Node *base = root.find("base"), *name = root.find("name"), *objective = root.find("objective");
  if (!base) root.fail("'base' is missing: the experiment that axes start from");
  sweep_.name = name ? import::read_line(*name, "name") : std::filesystem::path(file_).stem().string();
  std::vector<std::string> names;
  for (const Objective& one : objectives()) names.push_back(one.name);
  sweep_.objective = objective ? import::read_line(*objective, "objective", names) : names.front();
  if (objective) objective_place_ = *objective;
  if (const Node* best = root.find("best")) read_best(*best, sweep_);
  if (const Node* measured = root.find("measured")) sweep_.measured = read_measured(*measured);
  if (const Node* sample = root.find(kSample)) sample_ = read_sample(*sample);

  if (const Node* assume = root.find(kAssume)) read_assume(*assume);
  Assigner assigner(catalog_, base_, &places_, practice());
  assigner.defaults();
  assigner.assign_base(*base);
  const Node *axes = root.find("axes"), *zip = root.find("zip"), *where = root.find("where");
  factors_ = read_factors(axes, zip);
  sweep_.single = factors_.empty();
  axes_place_ = axes ? *axes : zip ? *zip : top_;
  if (!where) return;
  if (where->kind != Node::Kind::sequence)
    where->fail(fmt::format("'where' must be a list of expressions, not {}", import::describe(*where)));
  for (const Node& expression : where->items) {
    constraints_.emplace_back(expression);
    sweep_.where.push_back(constraints_.back().text());
  }
}

/// Reads `assume` before anything else, since it decides with which components sections begin.
void Reader::read_assume_override(const std::string& given) {
  const std::string assume = std::string(kAssume) + "=";
  if (!given.starts_with(assume)) return;
  Node value = import::parse_yaml(given.substr(assume.size()), "--set " + given);
  clear_lines(value);
  if (practice_) value.fail("'assume' is set twice; keep one");
  read_assume(value);
}

/// The first value wins, so --set has precedence over the document.
void Reader::read_assume(const Node& node) {
  const Practice named = practice_named(import::read_line(node, kAssume, practice_names()));
  if (!practice_) practice_ = named;
}

void Reader::read_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& given : overrides) read_override(given);
  check_overrides();
}

void Reader::read_override(const std::string& given) {
  const std::string shown = "--set " + given;
  const std::size_t equals = given.find('=');
  if (equals == std::string::npos || equals == 0) throw InputError("must be key=value, such as strategy.tp=8", shown);
  const bool is_empty = equals + 1 == given.size();
  Node value = import::parse_yaml(is_empty ? "''" : given.substr(equals + 1), shown);
  clear_lines(value);
  Node place = value;
  place.text.clear();
  if (const std::string section = std::string(kSample) + "."; given.starts_with(section)) {
    if (!sample_) sample_.emplace();
    return read_sample_entry(given.substr(section.size(), equals - section.size()), value, place, *sample_);
  }
  if (given.substr(0, equals) == kAssume) return;  // handled by read_assume_override()
  const Target target = find_typed_key(given.substr(0, equals), place);
  if (is_empty && !takes_empty_text(target)) value.fail("has no value behind '='; give one, or leave --set out");
  for (const Override& other : overrides_)
    if (other.target.path == target.path) value.fail(fmt::format("'{}' is set twice; keep one", target.path));
  for (Factor& factor : factors_)
    for (Axis& axis : factor.axes)
      if (axis.target.path == target.path) {
        if (factor.size() > 1 && factor.axes.size() > 1)
          value.fail(fmt::format("'{}' is varied together with others in a zip; edit the zip", target.path));
        axis.values = {value};  // an axis that is overridden stays a column, with one value
        return;
      }
  overrides_.push_back({target, std::move(value)});
}

void Reader::check_overrides() const {
  for (const Override& one : overrides_)
    for (const Factor& factor : factors_)
      for (const Axis& axis : factor.axes)
        if (mentions(one.value, one.target, axis.target))
          one.value.fail(
              fmt::format("'{}' is an axis; --set {}=… gives it one value", axis.target.path, axis.target.path));
}

/// Returns the assignments of every point: sections before keys inside them, and overrides after axes of the same
/// depth.
std::vector<Assignment> Reader::assignments() const {
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

/// Returns the settings of a point; values that were assumed go to `assumed`.
Settings Reader::resolve(const std::vector<std::size_t>& chosen, Places* places, Assumptions* assumed) const {
  Settings settings = start_;
  Assigner assigner(catalog_, settings, places, practice());
  for (const Assignment& one : assignments_)
    assigner.assign(*one.target, one.axis ? one.axis->values[chosen[one.factor]] : *one.override_value);
  count_listed_nodes(settings);
  Assumptions filled = assume(settings, catalog_, practice());
  if (assumed != nullptr) *assumed = std::move(filled);
  derive(settings);
  if (const std::string missing = borrower_.borrow(settings, catalog_); !missing.empty())
    top_.fail(
        fmt::format("'{}' is missing; protocol: calibrated needs every library_ constant of its GPU except those of "
                    "in-switch reduction",
                    missing));
  return settings;
}

/// Fails at the place where the user wrote `key`, or the nearest section around it.
void Reader::fail_at(const std::vector<std::size_t>& chosen, const std::string& key, const std::string& what) const {
  Places places = places_;
  resolve(chosen, &places);
  std::string path = key;
  while (!path.empty() && !places.count(path)) path.resize(path.rfind('.') == std::string::npos ? 0 : path.rfind('.'));
  const auto found = places.find(path);
  (found == places.end() ? top_ : found->second).fail(what);
}

/// Adds the files that these settings name to the sweep. An invalid file is an error even if other points of the sweep
/// do not use it.
void Reader::add_inputs(const std::vector<std::size_t>& chosen, const Settings& settings) {
  for (const NamedFile& file : named_files(settings)) {
    const auto& [key, path, required] = file;
    if (path.empty() && required) fail_at(chosen, key, fmt::format("'{}' is missing; give the path of a file", key));
    if (path.empty() || inputs_->count(path) > 0) continue;
    std::string text;
    try {
      text = import::read_text((std::filesystem::path(file_).parent_path() / path).string());
    } catch (const InputError& error) {
      fail_at(chosen, key, fmt::format("'{}': {}", key, error.what()));
    }
    check_file(file, text);
    input_bytes_ += text.size();
    if (input_bytes_ > kMaxInputBytes)
      fail_at(chosen, key,
              fmt::format("'{}': with it, the files that the sweep names have more than {} bytes together", key,
                          kMaxInputBytes));
    inputs_->emplace(path, std::move(text));
  }
}

void Reader::note_unmeasured(const std::vector<std::size_t>& chosen, const Settings& settings) {
  for (const std::string& kernel : unmeasured_kernels(settings, *inputs_)) {
    if (unmeasured_.empty()) unmeasured_at_ = chosen;
    unmeasured_.insert(kernel);
  }
}

/// Refuses a sweep that requires measured times but lacks some, before any simulation begins.
void Reader::fail_unmeasured() const {
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
void Reader::note_assumed(Assumptions assumptions) {
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
std::string Reader::other_violations(const Settings& settings, GraphCache& graphs) const {
  const RuleViolations all = find_violations(config_of(settings, inputs_), graphs, options_.scope);
  std::vector<std::string> others;
  for (std::size_t i = 1; i < all.broken.size(); ++i) others.push_back(all.broken[i].rule);
  return others.empty() ? ""
                        : fmt::format("; it violates {} too (`manyworlds explain` lists all)", fmt::join(others, ", "));
}

void Reader::visit(const std::vector<std::size_t>& chosen, const Columns& columns, GraphCache& graphs) {
  Assumptions assumed;
  Settings settings = resolve(chosen, nullptr, &assumed);
  if (!lacks_no_more(settings, complete_))
    if (const auto [key, what] = missing_required(settings, options_.scope); !key.empty()) fail_at(chosen, key, what);
  complete_ = settings;
  add_inputs(chosen, settings);
  const auto row = columns.row(chosen, settings);
  for (const Constraint& constraint : constraints_)
    if (!constraint.holds(settings)) {
      sweep_.excluded.push_back({row, "where", constraint.text()});
      return;
    }
  const auto violation = find_violation(config_reader_.read(settings, inputs_), graphs, options_.scope);
  if (!violation) {
    note_unmeasured(chosen, settings);
    note_assumed(std::move(assumed));
    assumed_.note(unused_oversubscription_note(settings));
    assumed_.note(unused_channels_note(settings));
    assumed_.note(tensor_over_nodes_note(settings));
    assumed_.note(unused_fabric_note(settings));
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
                        other_violations(settings, graphs)));
  sweep_.excluded.push_back({row, violation->rule, violation->reason});
}

/// Says first what excludes most combinations, then how many each rule excludes.
void Reader::fail_empty() const {
  std::map<std::string, std::size_t> times;
  for (const Excluded& one : sweep_.excluded) ++times[one.rule];
  std::vector<std::pair<std::string, std::size_t>> rules(times.begin(), times.end());
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto first = std::find_if(sweep_.excluded.begin(), sweep_.excluded.end(),
                                  [&](const Excluded& one) { return one.rule == rules.front().first; });
  std::vector<std::string> counts;
  for (const auto& [rule, count] : rules) counts.push_back(fmt::format("{} {}", rule, count));
  axes_place_.fail(fmt::format("no valid point: {} ({}); all {} combinations are excluded: {}", first->reason,
                               first->rule, sweep_.excluded.size(), fmt::join(counts, ", ")));
}

/// Lets all points share the settings of the first: what a point sets as that one has it takes no memory and no time.
void Reader::share_settings() {
  start_ = base_;
  try {
    Settings first = resolve(std::vector<std::size_t>(factors_.size(), 0), nullptr);
    first.share();
    start_.share_with(first);
  } catch (const InputError&) {  // is said again if that point is visited
    start_.share();
  }
}

void Reader::visit_point(std::uint64_t point, const Columns& columns, GraphCache& graphs) {
  std::vector<std::size_t> chosen(factors_.size(), 0);
  for (std::size_t f = factors_.size(); f-- > 0; point /= factors_[f].size()) chosen[f] = point % factors_[f].size();
  visit(chosen, columns, graphs);
}

/// Visits points in random order until `wanted` of them are valid, `limit` were visited or the time is over. The
/// results are in the order of the grid, as if it had been walked. Returns how many points were visited.
std::uint64_t Reader::visit_drawn(const GridPermutation& drawn, std::uint64_t limit, std::size_t wanted,
                                  const Columns& columns, GraphCache& graphs) {
  constexpr std::uint64_t kPointsPerLook = 16;  // at the clock
  std::vector<std::uint64_t> valid, left_out;
  std::uint64_t place = 0;
  for (; place < limit && valid.size() < wanted; ++place) {
    if (options_.is_over && place % kPointsPerLook == 0 && options_.is_over()) break;
    const std::uint64_t point = drawn.at(place);
    visit_point(point, columns, graphs);
    (sweep_.experiments.size() > valid.size() ? valid : left_out).push_back(point);
  }
  sort_by(valid, sweep_.experiments);
  sort_by(left_out, sweep_.excluded);
  for (std::size_t id = 0; id < sweep_.experiments.size(); ++id)
    sweep_.experiments[id].id = static_cast<std::uint32_t>(id);
  return place;
}

/// Draws points until enough of them are valid.
void Reader::visit_sample(std::uint64_t points, const Columns& columns, GraphCache& graphs) {
  const auto wanted = static_cast<std::size_t>(sample_->experiments);
  const std::uint64_t limit = std::min<std::uint64_t>(points, options_.max_points);
  const GridPermutation drawn(points, static_cast<std::uint64_t>(sample_->seed));
  const std::uint64_t visited = visit_drawn(drawn, limit, wanted, columns, graphs);
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
void Reader::visit_all(std::uint64_t points, const Columns& columns, GraphCache& graphs) {
  if (options_.is_over && !options_.keep_refused)
    sweep_.unvisited = points - visit_drawn({points, 1}, points, points, columns, graphs);
  else
    for (std::uint64_t point = 0; point < points; ++point) visit_point(point, columns, graphs);
}

void Reader::expand() {
  const std::uint64_t limit = sample_ ? GridPermutation::kMaxPoints : options_.max_points;
  std::uint64_t points = 1;
  for (const Factor& factor : factors_) {
    if (points > limit / factor.size())
      axes_place_.fail(fmt::format("the axes make more than {} points; split the sweep{}", limit,
                                   sample_ ? "" : ", or draw from it with 'sample: {experiments: N}'"));
    points *= factor.size();
  }
  if (sample_ && sample_->experiments == 0)
    throw InputError("needs 'sample.experiments', which is given nowhere", "--set sample.seed");
  if (sample_ && factors_.empty()) sample_->place.fail("'sample' draws from axes, and there are none");
  assignments_ = assignments();
  const Columns columns(factors_, base_, catalog_);
  sweep_.columns = columns.columns();
  share_settings();
  GraphCache graphs;
  sample_ ? visit_sample(points, columns, graphs) : visit_all(points, columns, graphs);
  if (!unmeasured_.empty()) fail_unmeasured();
  if (sweep_.experiments.empty() && sweep_.unvisited == 0 && !options_.keep_refused) fail_empty();
  sweep_.inputs = inputs_;
}

/// Fails early if no experiment can have a value to rank by, which would otherwise show only after all simulations.
void Reader::check_objective() const {
  const Objective& objective = objective_named(sweep_.objective);
  const bool known = std::any_of(sweep_.experiments.begin(), sweep_.experiments.end(), [&](const Experiment& one) {
    const auto has = [&](const std::string& key) { return one.settings.count(key) > 0; };
    return std::any_of(objective.needs.begin(), objective.needs.end(),
                       [&](const auto& keys) { return std::all_of(keys.begin(), keys.end(), has); });
  });
  if (known || objective.needs.empty() || sweep_.experiments.empty()) return;
  std::vector<std::string> lists;
  for (const auto& keys : objective.needs) lists.push_back(fmt::format("{}", fmt::join(keys, " and ")));
  objective_place_.fail(fmt::format("'objective' {} needs {}, which no experiment has; give a value as in --set {}=…",
                                    sweep_.objective, fmt::join(lists, ", or "), objective.needs.front().front()));
}

}  // namespace

Sweep parse_sweep(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                  const Catalog& catalog, const ReadOptions& options) {
  return Reader(file, ExtendedCatalog(catalog, text, file, overrides).get(), options).read(text, overrides);
}

Sweep read_sweep(const std::string& path, const std::vector<std::string>& overrides, const std::string& catalog_folder,
                 const ReadOptions& options) {
  const std::string text = import::read_text(path);
  return parse_sweep(text, path, overrides, Catalog(catalog_folder), options);
}

}  // namespace manyworlds::experiments
