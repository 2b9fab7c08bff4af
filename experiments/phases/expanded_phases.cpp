#include "experiments/phases/expanded_phases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/config/inputs.hpp"
#include "experiments/phases/phase_settings.hpp"
#include "experiments/phases/response_lengths.hpp"
#include "experiments/phases/weights_program.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/sweep/composed_document.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::phases {
namespace {

using core::workload::Strategy;
using import::Node;

constexpr std::int64_t kWeightBytes = 2;  // bf16
constexpr const char *kNodes = "cluster.nodes", *kPerNode = "cluster.gpus_per_node";
constexpr const char *kBatch = "strategy.global_batch", *kMicroBatch = "strategy.micro_batch";
constexpr const char *kRecompute = "strategy.recompute", *kSequenceParallel = "strategy.sequence_parallel";
constexpr const char *kZero = "strategy.zero", *kContext = "strategy.cp";
constexpr const char* kChunk = "collectives.chunk_bytes";
constexpr std::int64_t kPipelinedBytes = 4
                                         << 20;  // NCCL's buffer of a channel, NCCL_BUFFSIZE, in which a broadcast goes
constexpr const char* kGraphs = "strategy.stack.cuda_graphs";
constexpr const char *kSequence = "model.sequence", *kInference = "model.inference", *kCached = "model.cached_tokens";

std::int64_t integer(const Settings& settings, const std::string& key, std::int64_t otherwise) {
  const core::OptionValue* found = settings.value(key);
  return found == nullptr ? otherwise : std::get<std::int64_t>(*found);
}

std::int64_t gpus_of(const Settings& settings) {
  std::int64_t gpus = 0;
  for (const char* nodes : {"cluster", "cluster.second", "cluster.third"}) {
    const std::int64_t own = integer(settings, std::string(nodes) + ".nodes", 0);
    gpus += own * integer(settings, std::string(nodes) + ".gpus_per_node", integer(settings, kPerNode, 1));
  }
  return gpus;
}

std::int64_t over(std::int64_t a, std::int64_t b) {  // rounded up
  return (a + b - 1) / b;
}

class Expansion {
 public:
  Expansion(PhasesFile file, const std::vector<std::string>& overrides, const Catalog& catalog)
      : overrides_(overrides), set_(overrides_node(overrides)), catalog_(catalog, file.text, file.file, overrides) {
    expanded_.file = std::move(file);
  }

  ExpandedPhases run() {
    count_gpus();
    begin_sweep();
    expanded_.phases.resize(phases().size());
    draw_rollouts();
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) add_phase(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) check_phase(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (!phases()[i].has_experiment()) add_transfer(i);
    if (expanded_.sweep.experiments.empty())
      throw core::InputError("no phase has anything to simulate", expanded_.file.file);
    finish_sweep();
    return std::move(expanded_);
  }

 private:
  const std::vector<Phase>& phases() const { return expanded_.file.phases; }

  void count_gpus() {
    const PhasesFile& file = expanded_.file;
    const std::int64_t all = gpus_of(settings_of(file, {set_}, catalog_.get()));
    if (all < 1) file.base.fail("'cluster' is missing, or has no GPUs: phases are on them");
    std::int64_t in_pools = 0;
    for (const Pool& pool : file.pools) {
      expanded_.gpus_of_pools.push_back(pool.gpus > 0 ? pool.gpus : all);
      in_pools += expanded_.gpus_of_pools.back();
    }
    all_gpus_ = all;
    if (in_pools != all)
      throw core::InputError(
          fmt::format("'pools' have {} GPUs together, and 'cluster' of 'base' has {}", in_pools, all), file.file,
          file.pools.front().line);
  }

  void begin_sweep() {
    Sweep& sweep = expanded_.sweep;
    sweep.name = expanded_.file.title;
    sweep.objective = "step_time_s";
    sweep.text = expanded_.file.text;
    sweep.overrides = overrides_;
    sweep.columns = {{"phase", core::OptionInfo::Kind::text, "", "phase of the iteration"},
                     {"part", core::OptionInfo::Kind::text, "", "what of the phase the experiment is"}};
    set_keys_ = keys_of(with_dotted_keys(set_));
  }

  /// Draws responses before anything else, as other phases may take their batch and sequence from them.
  void draw_rollouts() {
    for (std::size_t i = 0; i < phases().size(); ++i) {
      const Phase& phase = phases()[i];
      if (phase.kind != Kind::generation) continue;
      const ResponseLengths& lengths = phase.rollout.lengths;
      const bool is_table = lengths.form == ResponseLengths::Form::table;
      expanded_.phases[i].rollout.tokens =
          response_tokens(lengths, phase.rollout.samples(), is_table ? import::read_text(lengths.file) : std::string());
      if (!rollout_) rollout_ = i;
    }
  }

  /// Returns the changes that make an experiment of a phase on its pool: its own, --set, and its part of the cluster.
  std::vector<Node> changes_of(const Phase& phase, std::int64_t gpus) const {
    std::vector<Node> changes{with_dotted_keys(phase.change), set_};
    const std::set<std::string> keys = keys_of(changes.front());
    const Settings settings = settings_of(expanded_.file, changes, catalog_.get());
    const std::int64_t own = gpus_of(settings);
    if (own == gpus) return changes;
    const auto is_cluster = [](const std::string& key) { return key == "cluster" || key == kNodes || key == kPerNode; };
    if (std::any_of(keys.begin(), keys.end(), is_cluster))
      expanded_.file.fail(phase, "base",
                          fmt::format("its cluster has {} GPUs, and pool '{}' has {}", own, pool_of(phase).name, gpus));
    changes.push_back(part_of_cluster(phase, settings, gpus));
    return changes;
  }

  const Pool& pool_of(const Phase& phase) const { return expanded_.file.pools[phase.pool]; }

  /// Returns the change to so many GPUs of the cluster.
  Node part_of_cluster(const Phase& phase, const Settings& settings, std::int64_t gpus) const {
    const std::int64_t per_node = integer(settings, kPerNode, 1);
    Change change(phase.place);
    const auto refuse = [&](const std::string& what) {
      throw core::InputError(fmt::format("pool '{}' of {} {}: {}", pool_of(phase).name, gpus,
                                         core::plural(static_cast<std::uint64_t>(gpus), "GPU"), what),
                             expanded_.file.file, pool_of(phase).line);
    };
    if (settings.has_below("cluster.second") || !settings.text("cluster.node_list").empty())
      refuse("the cluster has nodes of several kinds, or is a list of hosts, of which no part can be taken");
    if (gpus % per_node == 0)
      change.set(kNodes, gpus / per_node);
    else if (gpus < per_node && per_node % gpus == 0)
      change.set(kNodes, 1).set(kPerNode, gpus);
    else
      refuse(fmt::format("must be whole nodes of {} GPUs, or a part that divides one", per_node));
    return change.node();
  }

  /// Returns how many replicas the strategy makes of the pool.
  std::int64_t replicas_of(const Phase& phase, const std::vector<Node>& changes, std::int64_t gpus) const {
    const Settings settings = settings_of(expanded_.file, changes, catalog_.get());
    const std::int64_t tp = integer(settings, "strategy.tp", 1), pp = integer(settings, "strategy.pp", 1),
                       cp = integer(settings, kContext, 1);
    if (gpus % (tp * pp * cp) != 0)
      expanded_.file.fail(
          phase, "base",
          fmt::format("its strategy of tp {} x pp {} x cp {} must divide the {} {} of pool '{}'", tp, pp, cp, gpus,
                      core::plural(static_cast<std::uint64_t>(gpus), "GPU"), pool_of(phase).name));
    return gpus / (tp * pp * cp);
  }

  /// Adds an experiment and returns its id.
  std::uint32_t add(const Phase& phase, const std::string& part, const std::vector<Node>& changes,
                    const std::map<std::string, std::string>& files = {}) {
    const PhasesFile& file = expanded_.file;
    ComposedDocument document{file.text, {}, changes, files};
    document.root.kind = Node::Kind::mapping;
    document.root.file = file.base.file, document.root.line = file.base.line;
    document.root.entries.push_back({"base", file.base.line, file.base});
    if (file.practice.kind != Node::Kind::null)
      document.root.entries.push_back({"assume", file.practice.line, file.practice});
    Sweep one = compose_sweep(document, file.file, practice_overrides(), catalog_.get());
    MANYWORLDS_CHECK(one.experiments.size() == 1, "{} experiments", one.experiments.size());
    Experiment& experiment = one.experiments.front();
    for (const auto& [path, text] : *one.inputs) inputs_->emplace(path, text);
    experiment.id = static_cast<std::uint32_t>(expanded_.sweep.experiments.size());
    experiment.axes = {phase.name, part};
    if (!one.assumed.empty() && assumed_.emplace(phase.name, one.assumed).second) {
      const std::string line = fmt::format("{}: {}", phase.name, one.assumed);
      expanded_.sweep.assumed += (expanded_.sweep.assumed.empty() ? "" : "; ") + line;
    }
    expanded_.sweep.experiments.push_back(std::move(experiment));
    return expanded_.sweep.experiments.back().id;
  }

  /// Returns `assume` of --set: all else there is among the changes, in front of what a phase decides itself.
  std::vector<std::string> practice_overrides() const {
    std::vector<std::string> result;
    for (const std::string& given : overrides_)
      if (given.starts_with("assume=")) result.push_back(given);
    return result;
  }

  void add_phase(std::size_t index) {
    const Phase& phase = phases()[index];
    PhaseExperiments& to = expanded_.phases[index];
    to.gpus = expanded_.gpus_of_pools[phase.pool];
    const std::vector<Node> changes = changes_of(phase, to.gpus);
    const std::int64_t replicas = replicas_of(phase, changes, to.gpus);
    if (phase.kind == Kind::generation) {
      refuse_what_follows(phase, changes);
      add_rollout(phase, changes, replicas, to.rollout);
    } else {
      to.step = add(phase, "step", with_batch(phase, changes));
      if (phase.kind == Kind::training) note_samples(phase, experiment_config(*to.step).configuration.strategy);
    }
  }

  void refuse_what_follows(const Phase& phase, const std::vector<Node>& changes) const {
    const std::set<std::string> keys = keys_of(changes.front());
    for (const char* key : {kBatch, kMicroBatch, kSequence, kCached, kInference, kSequenceParallel, kRecompute, kZero})
      if (keys.contains(key))
        expanded_.file.fail(
            phase, "base",
            fmt::format("'{}' of a rollout follows from its kind, prompts, tokens and concurrent; leave it out", key));
    const std::int64_t cp = integer(settings_of(expanded_.file, changes, catalog_.get()), kContext, 1);
    if (cp > 1)
      expanded_.file.fail(
          phase, "base",
          fmt::format("'{}' of a rollout must be 1, not {}: a cache is not divided over a context", kContext, cp));
  }

  /// Tells if an update trains more or fewer samples than rollouts make.
  void note_samples(const Phase& phase, const Strategy& strategy) {
    std::int64_t samples = 0;
    for (const Phase& one : phases())
      if (one.kind == Kind::generation) samples += one.rollout.samples();
    const std::int64_t trained = phase.steps * strategy.global_batch;
    if (samples > 0 && trained != samples)
      note(phase, fmt::format("trains {} samples, of {} that rollouts make", trained, samples));
  }

  /// Refuses weights of another model, and a pool of GPUs of two kinds.
  void check_phase(std::size_t index) const {
    const Phase& phase = phases()[index];
    const ExperimentConfig own = experiment_config(any_of(index));
    if (phase.from) check_same_model(phase, "from", experiment_config(any_of(*phase.from)), own, phase);
    for (std::size_t i = 0; i < index; ++i) {
      if (!phases()[i].has_experiment() || phases()[i].pool != phase.pool) continue;
      const core::compute::Gpu &a = own.configuration.gpu, &b = experiment_config(any_of(i)).configuration.gpu;
      if (a.matrix_tflops != b.matrix_tflops || a.memory_gib != b.memory_gib || a.memory_gb_per_s != b.memory_gb_per_s)
        expanded_.file.fail(phase, "base",
                            fmt::format("its GPUs are others than those of '{}' on the same pool '{}'",
                                        phases()[i].name, pool_of(phase).name));
    }
  }

  void check_same_model(const Phase& phase, const char* key, const ExperimentConfig& trained,
                        const ExperimentConfig& used, const Phase& by) const {
    core::workload::Model other = used.configuration.model;
    other.sequence = trained.configuration.model.sequence;  // as many learned positions
    if (core::workload::model_parameters(trained.configuration.model) == core::workload::model_parameters(other))
      return;
    expanded_.file.fail(
        phase, key, fmt::format("'{}' and '{}' have models of different sizes", phases()[*phase.from].name, by.name));
  }

  /// Adds the batch and the sequence that follow from the rollout, unless the document says them.
  std::vector<Node> with_batch(const Phase& phase, std::vector<Node> changes) {
    Change change(phase.place);
    change.set(kInference, phase.kind == Kind::scoring ? "scoring" : "none").set(kCached, 0);
    if (phase.kind == Kind::scoring && !keys_of(changes.front()).contains(kRecompute)) change.set(kRecompute, "none");
    if (rollout_) {
      const Rollout& rollout = phases()[*rollout_].rollout;
      const std::vector<std::int64_t>& tokens = expanded_.phases[*rollout_].rollout.tokens;
      if (!says(changes, kBatch)) {
        if (rollout.samples() % phase.steps != 0)
          expanded_.file.fail(
              phase, "steps",
              fmt::format("'steps' must divide the {} samples of '{}'", rollout.samples(), phases()[*rollout_].name));
        change.set(kBatch, rollout.samples() / phase.steps);
        note(phase, fmt::format("{}={}", kBatch, rollout.samples() / phase.steps));
      }
      if (!says(changes, kSequence)) {
        const std::int64_t all = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
        const Settings settings = settings_of(expanded_.file, changes, catalog_.get());
        const std::int64_t cp = integer(settings, kContext, 1), parts = integer(settings, "strategy.tp", 1) * cp;
        const std::int64_t padded = cp > 1 ? 2 * parts : parts;  // ranks of a context have two blocks of it
        const std::int64_t mean = rollout.prompt_tokens + over(all, rollout.samples());
        const std::int64_t sequence = over(mean, padded) * padded;
        change.set(kSequence, sequence);
        note(phase, fmt::format("{}={}", kSequence, sequence));
      }
    }
    if (!change.node().entries.empty()) changes.push_back(change.node());
    return changes;
  }

  void note(const Phase& phase, const std::string& what) {
    expanded_.notes.push_back(fmt::format("{}: {}", phase.name, what));
  }

  /// Whether the document or --set names a key, be it inside a section.
  bool says(const std::vector<Node>& changes, const std::string& key) const {
    return set_keys_.contains(key) || keys_of(with_dotted_keys(expanded_.file.base)).contains(key) ||
           keys_of(changes.front()).contains(key);
  }

  void add_rollout(const Phase& phase, const std::vector<Node>& changes, std::int64_t replicas,
                   RolloutExperiments& to) {
    const Rollout& rollout = phase.rollout;
    to.replicas = replicas;
    for (const auto& tokens : dealt_out(to.tokens, replicas))
      to.decodings.push_back(decoding_of(tokens, rollout.prompt_tokens, rollout.concurrent));
    to.grid = decoding_grid(to.decodings);
    const std::int64_t most = rollout.lengths.max_tokens, ended = std::count(to.tokens.begin(), to.tokens.end(), most);
    if (ended > 0) note(phase, fmt::format("{} of {} responses end at max_tokens {}", ended, rollout.samples(), most));
    const bool says_graphs = says(changes, kGraphs);
    if (!says_graphs) note(phase, fmt::format("{}=all of decoding steps", kGraphs));
    const auto add_step = [&](const char* what, std::int64_t samples, std::int64_t sequence, std::int64_t cached) {
      Change change(phase.place);
      change.set(kInference, "generation").set(kSequence, sequence).set(kCached, cached);
      change.set(kMicroBatch, samples).set(kBatch, samples * replicas);
      change.set(kRecompute, "none").set(kSequenceParallel, "false").set(kZero, 0);
      if (cached > 0 && !says_graphs) change.set(kGraphs, "all");
      std::vector<Node> all = changes;
      all.push_back(change.node());
      return add(phase, fmt::format("{} {}x{}", what, samples, std::max(cached, sequence)), all);
    };
    for (std::size_t column = 0; column < to.grid.samples.size(); ++column) {
      to.decode.emplace_back();
      for (const std::int64_t length : to.grid.lengths[column])
        to.decode.back().push_back(add_step("decode", to.grid.samples[column], 1, length));
    }
    for (const DecodingPoint& check : to.grid.checks)
      to.checks.push_back(add_step("check", check.samples, 1, check.length));
    to.prefill_one = to.prefill_many = add_step("prefill", 1, rollout.prompt_tokens, 0);
    std::int64_t together = 1;
    for (const Decoding& one : to.decodings)
      for (const std::int64_t samples : one.prefills) together = std::max(together, samples);
    to.prefill_samples = std::clamp<std::int64_t>(rollout.prefill_tokens / rollout.prompt_tokens, 1, together);
    if (to.prefill_samples > 1) to.prefill_many = add_step("prefill", to.prefill_samples, rollout.prompt_tokens, 0);
    to.is_pipeline = experiment_config(to.prefill_one).configuration.strategy.pp > 1;
  }

  ExperimentConfig experiment_config(std::uint32_t id) const { return expanded_.sweep.experiments.at(id).config(); }

  /// Returns an experiment with the strategy of a phase.
  std::uint32_t any_of(std::size_t phase) const {
    const PhaseExperiments& experiments = expanded_.phases[phase];
    return experiments.step ? *experiments.step : experiments.rollout.prefill_one;
  }

  /// Returns the GPUs of the cluster that a pool has: pools lie one after the other.
  std::uint32_t first_gpu_of(std::size_t pool) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < pool; ++i) first += expanded_.gpus_of_pools[i];
    return static_cast<std::uint32_t>(first);
  }

  void add_transfer(std::size_t index) {
    const Phase& phase = phases()[index];
    TransferExperiments& to = expanded_.phases[index].transfer;
    const Phase &from = phases()[*phase.from], &target = phases()[phase.to];
    const ExperimentConfig trained = experiment_config(any_of(*phase.from)), used = experiment_config(any_of(phase.to));
    const bool is_shared = from.pool == target.pool;
    expanded_.phases[index].gpus =
        expanded_.gpus_of_pools[target.pool] + (is_shared ? 0 : expanded_.gpus_of_pools[from.pool]);
    to.weight_bytes = kWeightBytes * core::workload::model_parameters(trained.configuration.model);
    check_same_model(phase, "to", trained, used, target);
    for (const Phase* one : {&from, &target})
      if (keys_of(with_dotted_keys(one->change)).contains("cluster"))
        expanded_.file.fail(
            phase, one == &from ? "from" : "to",
            fmt::format("'{}' has a cluster of its own, and weights go over that of 'base'", one->name));
    const WeightsRoute route = route_of(trained, used, is_shared, from, target, to);
    to.buckets = over(to.weight_bytes, phase.bucket_bytes);
    to.bucket_bytes = over(to.weight_bytes, to.buckets);
    if (!route.moves()) {
      to.buckets = 0;
      return;
    }
    const std::string path = fmt::format("weights of phase {}", index + 1);
    std::vector<Node> changes{set_};
    const Settings settings = settings_of(expanded_.file, {set_}, catalog_.get());
    const std::int64_t gpus = is_shared ? expanded_.gpus_of_pools[target.pool] : all_gpus_;
    if (gpus != gpus_of(settings)) changes.push_back(part_of_cluster(target, settings, gpus));
    Change change(phase.place);
    change.set("program.file", path);
    if (!route.receivers.empty() && !says({set_}, kChunk)) {
      change.set(kChunk, kPipelinedBytes);
      note(phase, fmt::format("{}={}", kChunk, kPipelinedBytes));
    }
    changes.push_back(change.node());
    to.bucket = add(phase, "bucket", changes, {{path, weights_program(route, to.bucket_bytes)}});
  }

  WeightsRoute route_of(const ExperimentConfig& trained, const ExperimentConfig& used, bool is_shared,
                        const Phase& from, const Phase& target, TransferExperiments& to) const {
    const Strategy &a = trained.configuration.strategy, &b = used.configuration.strategy;
    WeightsRoute route;
    const bool same = a.tp == b.tp && a.pp == b.pp && a.ep == b.ep && a.etp == b.etp && a.cp == b.cp &&
                      a.virtual_stages == b.virtual_stages && a.zero < 3;
    if (is_shared && same) return route;
    const std::uint32_t first = is_shared ? 0 : first_gpu_of(from.pool);
    const std::int64_t per_stage = a.tp * a.cp * a.dp;
    const std::int64_t shards = a.zero == 3 ? a.tp * a.shards() : std::max(a.tp, a.ep * a.etp);
    to.gathered_over = shards * a.pp;
    core::step::ParallelConfig layout;
    layout.tp = a.tp, layout.cp = a.cp, layout.dp = a.dp, layout.pp = a.pp;
    layout.placement = trained.configuration.placement;
    const auto gpu = [&](std::int64_t rank) {
      return first + core::step::gpu_of(layout, core::step::RankId(static_cast<std::uint32_t>(rank))).value();
    };
    for (std::int64_t group = 0; group < per_stage / shards && to.gathered_over > 1; ++group) {
      route.gatherers.emplace_back();
      for (std::int64_t stage = 0; stage < a.pp; ++stage)
        for (std::int64_t shard = 0; shard < shards; ++shard)
          route.gatherers.back().push_back(gpu(stage * per_stage + group * shards + shard));
    }
    if (is_shared) return route;
    to.receivers = expanded_.gpus_of_pools[target.pool];
    route.receivers = {gpu(0)};
    for (std::uint32_t i = 0; i < to.receivers; ++i) route.receivers.push_back(first_gpu_of(target.pool) + i);
    return route;
  }

  void finish_sweep() {
    expanded_.sweep.inputs = inputs_;
    for (Experiment& one : expanded_.sweep.experiments) one.inputs = inputs_;
  }

  std::vector<std::string> overrides_;
  Node set_;  // what they say
  ExtendedCatalog catalog_;
  ExpandedPhases expanded_;
  std::int64_t all_gpus_ = 0;
  std::set<std::string> set_keys_;              // of --set
  std::optional<std::size_t> rollout_;          // the first phase that generates
  std::map<std::string, std::string> assumed_;  // by phase
  std::shared_ptr<Inputs> inputs_ = std::make_shared<Inputs>();
};

}  // namespace

ExpandedPhases expand(PhasesFile file, const std::vector<std::string>& overrides, const Catalog& catalog) {
  return Expansion(std::move(file), overrides, catalog).run();
}

}  // namespace manyworlds::experiments::phases
