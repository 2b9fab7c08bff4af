#include "experiments/phase_files/phases_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/options.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::phases {
namespace {

using core::InputError;
using import::Entry;
using import::Node;

constexpr double kMaxGpus = 1 << 20, kMaxSamples = 1 << 20, kMaxTokens = 1 << 20, kMaxConcurrent = 1 << 14;
constexpr double kMaxSteps = 1 << 20, kMaxSeed = 1e15, kMaxSigma = 10;
constexpr double kMinBucket = 1024, kMaxBucket = 1e15;
constexpr std::size_t kMaxPhases = 64, kMaxPools = 16;
const std::string kAll = "all";

core::OptionInfo number(core::OptionInfo::Kind kind, double minimum, double maximum, const char* unit = "") {
  core::OptionInfo info;
  info.kind = kind;
  info.minimum = minimum, info.maximum = maximum;
  info.unit = unit;
  return info;
}

std::int64_t integer_of(const Node& node, const std::string& key, double minimum, double maximum,
                        const char* unit = "") {
  return std::get<std::int64_t>(read_value(node, number(core::OptionInfo::Kind::integer, minimum, maximum, unit), key));
}

double real_of(const Node& node, const std::string& key, double minimum, double maximum) {
  return std::get<double>(read_value(node, number(core::OptionInfo::Kind::real, minimum, maximum), key));
}

bool boolean_of(const Node& node, const std::string& key) {
  return std::get<bool>(read_value(node, number(core::OptionInfo::Kind::boolean, 0, 1), key));
}

void need_mapping(const Node& node, const std::string& what) {
  if (node.kind != Node::Kind::mapping) node.fail(fmt::format("{} must be a mapping, not {}", what, describe(node)));
}

/// What a key of a phase is for.
struct PhaseKey {
  std::string name;
  std::vector<Kind> kinds;
};

const std::vector<PhaseKey>& phase_keys() {
  using enum Kind;
  static const std::vector<PhaseKey> keys{
      {"name", {training, scoring, generation, transfer}},
      {"kind", {training, scoring, generation, transfer}},
      {"after", {training, scoring, generation, transfer}},
      {"on", {training, scoring, generation}},
      {"base", {training, scoring, generation}},
      {"resident", {training, scoring, generation}},
      {"steps", {training, scoring}},
      {"prompts", {generation}},
      {"responses", {generation}},
      {"prompt_tokens", {generation}},
      {"response_tokens", {generation}},
      {"max_tokens", {generation}},
      {"concurrent", {generation}},
      {"prefill_tokens", {generation}},
      {"from", {scoring, transfer}},
      {"to", {transfer}},
      {"bucket", {transfer}},
      {"group", {transfer}},
  };
  return keys;
}

std::string name_of(Kind kind) {
  return kind_names().at(static_cast<std::size_t>(kind));
}

void check_phase_keys(const Node& node, Kind kind) {
  std::vector<std::string> known;
  for (const PhaseKey& key : phase_keys())
    if (std::find(key.kinds.begin(), key.kinds.end(), kind) != key.kinds.end()) known.push_back(key.name);
  for (const Entry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    const auto other = std::find_if(phase_keys().begin(), phase_keys().end(),
                                    [&](const PhaseKey& key) { return key.name == entry.key; });
    std::string hint = suggestion(entry.key, known);
    if (other != phase_keys().end()) {
      std::vector<std::string> kinds;
      for (const Kind one : other->kinds) kinds.push_back(name_of(one));
      hint = fmt::format("; it is of {}, and this phase is of kind {}", fmt::join(kinds, " and "), name_of(kind));
    }
    throw InputError(fmt::format("unknown key '{}'{}", entry.key, hint), *entry.value.file, entry.line);
  }
}

const Node& needed(const Node& phase, const char* key, const char* example) {
  const Node* found = phase.find(key);
  if (found == nullptr) phase.fail(fmt::format("'{}' is missing, as in `{}`", key, example));
  return *found;
}

ResponseLengths read_lengths(const Node& node, const std::string& file) {
  using Form = ResponseLengths::Form;
  ResponseLengths lengths;
  const std::string key = "response_tokens";
  if (node.kind != Node::Kind::mapping) {
    lengths.tokens = integer_of(node, key, 1, kMaxTokens);
    return lengths;
  }
  const bool is_table = node.find("file") != nullptr;
  check_keys(node,
             is_table ? std::vector<std::string>{"file", "seed"} : std::vector<std::string>{"mean", "sigma", "seed"},
             "'response_tokens'");
  if (const Node* seed = node.find("seed")) lengths.seed = integer_of(*seed, key + ".seed", 0, kMaxSeed);
  if (is_table) {
    lengths.form = Form::table;
    const Node& path = *node.find("file");
    lengths.file = import::read_line(path, key + ".file");
    lengths.path = (std::filesystem::path(file).parent_path() / lengths.file).string();
    lengths.line = path.line;
    return lengths;
  }
  lengths.form = Form::lognormal;
  const Node *mean = node.find("mean"), *sigma = node.find("sigma");
  if (mean == nullptr || sigma == nullptr)
    node.fail("'response_tokens' must be a number, {mean: 1200, sigma: 0.8} or {file: lengths.csv}");
  lengths.mean = real_of(*mean, key + ".mean", 1, kMaxTokens);
  lengths.sigma = real_of(*sigma, key + ".sigma", 0, kMaxSigma);
  return lengths;
}

Rollout read_rollout(const Node& node, const std::string& file) {
  Rollout rollout;
  rollout.prompts = integer_of(needed(node, "prompts", "prompts: 64"), "prompts", 1, kMaxSamples);
  if (const Node* responses = node.find("responses"))
    rollout.responses = integer_of(*responses, "responses", 1, kMaxSamples);
  if (static_cast<double>(rollout.prompts) * static_cast<double>(rollout.responses) > kMaxSamples)
    node.fail(fmt::format("'prompts' times 'responses' may be {} at most", kMaxSamples));
  rollout.prompt_tokens =
      integer_of(needed(node, "prompt_tokens", "prompt_tokens: 512"), "prompt_tokens", 1, kMaxTokens);
  rollout.lengths = read_lengths(needed(node, "response_tokens", "response_tokens: 2048"), file);
  if (const Node* most = node.find("max_tokens"))
    rollout.lengths.max_tokens = integer_of(*most, "max_tokens", 1, kMaxTokens);
  rollout.concurrent = integer_of(needed(node, "concurrent", "concurrent: 64"), "concurrent", 1, kMaxConcurrent);
  if (const Node* prefill = node.find("prefill_tokens"))
    rollout.prefill_tokens = integer_of(*prefill, "prefill_tokens", 1, kMaxTokens);
  return rollout;
}

/// Returns which of the document's own names is meant, or all of them, which are quoted as they may be any word.
std::string hint_of(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = suggestion(name, names);
  if (near.starts_with("; did")) return near;
  std::vector<std::string> quoted;
  for (const std::string& one : names) quoted.push_back(fmt::format("'{}'", one));
  if (names == std::vector{kAll}) return fmt::format("; without 'pools' there is one, {}", quoted.front());
  return fmt::format("; there {} {}", names.size() == 1 ? "is" : "are", fmt::join(quoted, ", "));
}

/// Reads phases one by one: each may name those before it and, of a transfer, those behind it.
class Reader {
 public:
  explicit Reader(PhasesFile& file) : file_(file) {}

  void read_pools(const Node* node) {
    if (node == nullptr) {
      file_.pools = {{kAll, 0, 0}};
      return;
    }
    need_mapping(*node, "'pools'");
    if (node->entries.empty())
      node->fail("'pools' must have numbers of GPUs by name, as in {trainers: 32, generators: 32}");
    if (node->entries.size() > kMaxPools) node->fail(fmt::format("'pools' may be {} at most", kMaxPools));
    for (const Entry& entry : node->entries)
      file_.pools.push_back({entry.key, integer_of(entry.value, "pools." + entry.key, 1, kMaxGpus), entry.line});
  }

  void read_phases(const Node& node) {
    if (node.kind == Node::Kind::sequence && node.items.empty()) node.fail("'phases' must have a phase at least");
    if (node.kind != Node::Kind::sequence)
      node.fail(fmt::format("'phases' must be a list of phases, not {}", describe(node)));
    if (node.items.size() > kMaxPhases) node.fail(fmt::format("'phases' may be {} at most", kMaxPhases));
    for (const Node& one : node.items) read_name(one);
    for (std::size_t i = 0; i < node.items.size(); ++i) read_phase(node.items[i], i);
    for (std::size_t i = 0; i < node.items.size(); ++i) check_ends(node.items[i], i);
  }

 private:
  void read_name(const Node& node) {
    need_mapping(node, "a phase");
    Phase phase;
    phase.place.file = node.file;
    phase.place.line = node.line;
    phase.name = import::read_line(needed(node, "name", "name: rollout"), "name");
    for (const Phase& other : file_.phases)
      if (other.name == phase.name) node.fail(fmt::format("two phases are called '{}'; rename one", phase.name));
    const std::string kind = import::read_line(needed(node, "kind", "kind: training"), "kind", kind_names());
    phase.kind = static_cast<Kind>(std::find(kind_names().begin(), kind_names().end(), kind) - kind_names().begin());
    for (const Entry& entry : node.entries) phase.lines[entry.key] = entry.line;
    file_.phases.push_back(std::move(phase));
  }

  std::size_t phase_named(const Node& node, const std::string& key) const {
    std::vector<std::string> names;
    for (const Phase& phase : file_.phases) names.push_back(phase.name);
    const std::string name = import::read_line(node, key);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) node.fail(fmt::format("'{}': unknown phase '{}'{}", key, name, hint_of(name, names)));
    return static_cast<std::size_t>(found - names.begin());
  }

  std::size_t pool_named(const Node& node) const {
    std::vector<std::string> names;
    for (const Pool& pool : file_.pools) names.push_back(pool.name);
    const std::string name = import::read_line(node, "on");
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) node.fail(fmt::format("'on': unknown pool '{}'{}", name, hint_of(name, names)));
    return static_cast<std::size_t>(found - names.begin());
  }

  void read_after(const Node* node, std::size_t index) {
    Phase& phase = file_.phases[index];
    if (node == nullptr) {
      if (index > 0) phase.after = {index - 1};
      return;
    }
    const auto add = [&](const Node& one) {
      const std::size_t before = phase_named(one, "after");
      if (before >= index) one.fail("'after' may name phases that stand before this one");
      phase.after.push_back(before);
    };
    if (node->kind == Node::Kind::sequence)
      for (const Node& one : node->items) add(one);
    else
      add(*node);
  }

  void read_phase(const Node& node, std::size_t index) {
    Phase& phase = file_.phases[index];
    check_phase_keys(node, phase.kind);
    read_after(node.find("after"), index);
    if (const Node* steps = node.find("steps")) phase.steps = integer_of(*steps, "steps", 1, kMaxSteps);
    if (const Node* resident = node.find("resident")) phase.resident = boolean_of(*resident, "resident");
    if (const Node* bucket = node.find("bucket"))
      phase.bucket_bytes = integer_of(*bucket, "bucket", kMinBucket, kMaxBucket, "bytes");
    if (const Node* group = node.find("group"))
      phase.all_trainers = import::read_line(*group, "group", {"first_trainer", "all_trainers"}) == "all_trainers";
    if (const Node* from = node.find("from")) phase.from = phase_named(*from, "from");
    phase.change.kind = Node::Kind::mapping;
    phase.change.file = node.file, phase.change.line = node.line;
    if (const Node* base = node.find("base"); base != nullptr && base->kind != Node::Kind::null) {
      need_mapping(*base, "'base'");
      phase.change = *base;
    }
    if (phase.kind == Kind::generation) phase.rollout = read_rollout(node, file_.file);
    if (phase.kind == Kind::transfer) {
      needed(node, "from", "from: update");
      phase.to = phase_named(needed(node, "to", "to: rollout"), "to");
      return;
    }
    const Node* on = node.find("on");
    if (on == nullptr && file_.pools.size() > 1)
      needed(node, "on", fmt::format("on: {}", file_.pools.front().name).c_str());
    if (on != nullptr) phase.pool = pool_named(*on);
  }

  void check_ends(const Node& node, std::size_t index) {
    Phase& phase = file_.phases[index];
    if (phase.from && file_.phases[*phase.from].kind != Kind::training)
      node.find("from")->fail(fmt::format("'from' must name a phase of kind training, and '{}' is of kind {}",
                                          file_.phases[*phase.from].name, name_of(file_.phases[*phase.from].kind)));
    if (phase.kind != Kind::transfer) return;
    const Phase& to = file_.phases[phase.to];
    if (to.kind != Kind::generation && to.kind != Kind::scoring)
      node.find("to")->fail(fmt::format("'to' must name a phase of kind generation or scoring, and '{}' is of kind {}",
                                        to.name, name_of(to.kind)));
    phase.pool = to.pool;
  }

  PhasesFile& file_;
};

}  // namespace

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names{"training", "scoring", "generation", "transfer"};
  return names;
}

void PhasesFile::fail(const Phase& phase, const std::string& key, const std::string& what) const {
  const auto line = phase.lines.find(key);
  throw InputError(fmt::format("phase '{}': {}", phase.name, what), file,
                   line == phase.lines.end() ? phase.place.line : line->second);
}

PhasesFile parse_phases(std::string_view text, const std::string& name) {
  const Node root = import::parse_yaml(text, name);
  need_mapping(root, "a document of phases");
  static const std::vector<std::string> known{"name", "assume", "base", "schedule", "pools", "phases"};
  for (const Entry& entry : root.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw InputError(fmt::format("unknown key '{}'{}", entry.key, suggestion(entry.key, known)), name, entry.line);
  PhasesFile file;
  file.file = name;
  file.text = text;
  const Node *base = root.find("base"), *phases = root.find("phases"), *title = root.find("name");
  if (base == nullptr) root.fail("'base' is missing: the experiment that phases start from");
  if (phases == nullptr)
    root.fail("'phases' is missing: what an iteration does, as in [{name: update, kind: training}]");
  need_mapping(*base, "'base'");
  file.base = *base;
  if (const Node* practice = root.find("assume")) file.practice = *practice;
  file.title = title != nullptr ? import::read_line(*title, "name") : std::filesystem::path(name).stem().string();
  if (const Node* schedule = root.find("schedule"))
    if (import::read_line(*schedule, "schedule", {"synchronous", "asynchronous"}) == "asynchronous")
      file.schedule = Schedule::asynchronous;
  Reader reader(file);
  reader.read_pools(root.find("pools"));
  reader.read_phases(*phases);
  return file;
}

}  // namespace manyworlds::experiments::phases
