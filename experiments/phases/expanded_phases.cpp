#include "experiments/phases/expanded_phases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/phase_files/phase_settings.hpp"
#include "experiments/phase_files/response_lengths.hpp"
#include "experiments/phases/derived_settings.hpp"
#include "experiments/phases/merged_pairs.hpp"
#include "experiments/phases/pool_clusters.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/weight_transfers/weights_program.hpp"

namespace manyworlds::experiments::phases {
namespace {

using core::workload::Strategy;
using import::Node;

constexpr std::int64_t kWeightBytes = 2;  // bf16
constexpr const char *kCluster = "cluster", *kTensor = "strategy.tp", *kContext = "strategy.cp",
                     *kKeyHeads = "model.kv_heads";
constexpr const char *kBatch = "strategy.global_batch", *kSequence = "model.sequence";
constexpr const char* kChunk = "collectives.chunk_bytes";
/// NCCL's buffer of a channel, NCCL_BUFFSIZE, in which a broadcast goes.
constexpr std::int64_t kPipelinedBytes = std::int64_t{4} << 20;

std::int64_t over(std::int64_t a, std::int64_t b) {  // rounded up
  return (a + b - 1) / b;
}

Node empty_mapping() {
  Node node;
  node.kind = Node::Kind::mapping;
  return node;
}

class Expansion {
 public:
  Expansion(PhasesFile file, const std::vector<std::string>& overrides, const Catalog& catalog,
            const TextsByPath& tables)
      : expanded_{.file = std::move(file), .sweep = {}, .phases = {}, .gpus_of_pools = {}, .notes = {}, .replaced = {}},
        tables_(tables),
        set_(overrides_node(overrides)),
        catalog_(catalog, expanded_.file.text, expanded_.file.file, overrides),
        base_(expanded_.file, empty_mapping(), set_, catalog_.get()),
        sweep_(expanded_.file, overrides, catalog_.get()) {}

  ExpandedPhases run() {
    count_gpus();
    expanded_.phases.resize(phases().size());
    draw_rollouts();
    for (const Phase& phase : phases())
      written_.emplace_back(expanded_.file, phase.has_experiment() ? phase.change : empty_mapping(), set_,
                            catalog_.get());
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) add_phase(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) check_phase(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (!phases()[i].has_experiment()) add_transfer(i);
    if (sweep_.empty()) throw core::InputError("no phase has anything to simulate", expanded_.file.file);
    expanded_.sweep = sweep_.finish();
    return std::move(expanded_);
  }

 private:
  const std::vector<Phase>& phases() const { return expanded_.file.phases; }
  const Pool& pool_of(const Phase& phase) const { return expanded_.file.pools[phase.pool]; }
  ExperimentConfig config(std::uint32_t id) const { return sweep_.experiment(id).config(); }

  void count_gpus() {
    const PhasesFile& file = expanded_.file;
    const std::int64_t all = gpus_of(base_.settings());
    if (all < 1) file.base.fail("'cluster' is missing, or has no GPUs: phases are on them");
    std::int64_t in_pools = 0;
    for (const Pool& pool : file.pools) {
      expanded_.gpus_of_pools.push_back(pool.gpus > 0 ? pool.gpus : all);
      in_pools += expanded_.gpus_of_pools.back();
    }
    if (in_pools != all)
      throw core::InputError(
          fmt::format("'pools' have {} GPUs together, and 'cluster' of 'base' has {}", in_pools, all), file.file,
          file.pools.front().line);
  }

  /// Draws responses before anything else, as other phases may take their batch and sequence from them.
  void draw_rollouts() {
    for (std::size_t i = 0; i < phases().size(); ++i) {
      const Phase& phase = phases()[i];
      if (phase.kind != Kind::generation) continue;
      expanded_.phases[i].rollout.tokens =
          response_tokens(phase.rollout.lengths, phase.rollout.samples(), table_of(phase));
      if (!rollout_) rollout_ = i;
    }
  }

  /// Returns the text of a rollout's table of lengths; empty if it has none.
  std::string table_of(const Phase& phase) {
    const ResponseLengths& lengths = phase.rollout.lengths;
    if (lengths.form != ResponseLengths::Form::table) return {};
    std::string text;
    if (const auto known = tables_.find(lengths.file); known != tables_.end()) {
      text = known->second;
    } else {
      try {
        text = import::read_text(lengths.path);
      } catch (const core::InputError& error) {
        throw core::InputError(fmt::format("phase '{}': 'response_tokens.file': {}", phase.name, error.what()),
                               expanded_.file.file, lengths.line);
      }
    }
    sweep_.keep(lengths.file, text);
    return text;
  }

  void add_phase(std::size_t index) {
    const Phase& phase = phases()[index];
    PhaseExperiments& to = expanded_.phases[index];
    const WrittenSettings& written = written_[index];
    to.gpus = expanded_.gpus_of_pools[phase.pool];
    const DerivedSettings cluster = cluster_of_pool(expanded_.file, phase, written, to.gpus);
    const std::int64_t replicas = replicas_on(expanded_.file, phase, written, to.gpus);
    if (phase.kind == Kind::generation) {
      refuse_what_follows(phase, written);
      add_rollout(phase, written, cluster, replicas, to.rollout);
    } else {
      to.step = sweep_.add(phase, "step", written, {cluster, step_settings(phase, written)});
      if (phase.kind == Kind::training) note_samples(phase, config(*to.step).configuration.strategy);
    }
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

  void note(const Phase& phase, const std::string& what) {
    expanded_.notes.push_back(fmt::format("{}: {}", phase.name, what));
  }

  /// Tells which of the derived settings the document or --set give otherwise.
  void note_replaced(const Phase& phase, const WrittenSettings& written, const DerivedSettings& derived) {
    for (const import::Entry& entry : derived.node().entries) {
      const core::OptionValue* value = written.settings().value(entry.key);
      if (!written.say(entry.key) || value == nullptr) continue;
      if (const std::string text = import::value_text(*value); text != entry.value.text)
        expanded_.replaced.push_back(fmt::format("{}: {}={} instead of {}, for {}", phase.name, entry.key,
                                                 entry.value.text, text, *derived.origin_of(entry.key)));
    }
  }

  /// Refuses weights of another model, and a pool of GPUs of two kinds.
  void check_phase(std::size_t index) const {
    const Phase& phase = phases()[index];
    if (phase.from) check_same_model(phase, "from", *phase.from, index);
    const ExperimentConfig own = config(any_of(index));
    for (std::size_t i = 0; i < index; ++i) {
      if (!phases()[i].has_experiment() || phases()[i].pool != phase.pool) continue;
      const core::compute::Gpu &a = own.configuration.gpu, &b = config(any_of(i)).configuration.gpu;
      if (a.matrix_tflops != b.matrix_tflops || a.memory_gib != b.memory_gib || a.memory_gb_per_s != b.memory_gb_per_s)
        fail_at(phase, written_[index].place_of({"cluster.gpu", kCluster}, phase.place),
                fmt::format("its GPUs are others than those of '{}' on the same pool '{}'", phases()[i].name,
                            pool_of(phase).name));
    }
  }

  /// Refuses, at a key of a phase, that what one phase trains is used by another that has a model of other sizes. Pairs
  /// of low rank do not count, as they are merged.
  void check_same_model(const Phase& phase, const char* key, std::size_t trained, std::size_t used) const {
    const core::workload::Model model = merged_model(sweep_.experiment(any_of(trained)));
    core::workload::Model other = merged_model(sweep_.experiment(any_of(used)));
    other.sequence = model.sequence;                     // as many learned positions
    other.kv_heads = written_key_heads(written_[used]);  // without the copies of ranks that generate
    const std::int64_t own = core::workload::model_parameters(model), others = core::workload::model_parameters(other);
    if (own == others) return;
    expanded_.file.fail(phase, key,
                        fmt::format("'{}' and '{}' have models of different sizes, of {} and {} parameters: give both "
                                    "the same 'model'",
                                    phases()[trained].name, phases()[used].name, own, others));
  }

  /// Returns what a step of training or scoring has of the phase, and of the rollout unless the document says it.
  DerivedSettings step_settings(const Phase& phase, const WrittenSettings& written) {
    DerivedSettings derived = kind_settings(phase, written);
    note_replaced(phase, written, derived);
    if (rollout_ && !written.say(kBatch)) add_batch(phase, derived);
    if (rollout_ && !written.say(kSequence)) add_sequence(phase, written, derived);
    return derived;
  }

  void add_batch(const Phase& phase, DerivedSettings& derived) {
    const Phase& rollout = phases()[*rollout_];
    const std::int64_t samples = rollout.rollout.samples();
    if (samples % phase.steps != 0)
      expanded_.file.fail(phase, "steps",
                          fmt::format("'steps' must divide the {} samples of '{}'", samples, rollout.name));
    derived.set(
        kBatch, samples / phase.steps,
        fmt::format("the {} of '{}' in {}", counted(samples, "sample"), rollout.name, counted(phase.steps, "step")));
    note(phase, fmt::format("{}={}", kBatch, samples / phase.steps));
  }

  void add_sequence(const Phase& phase, const WrittenSettings& written, DerivedSettings& derived) {
    const Rollout& rollout = phases()[*rollout_].rollout;
    const std::vector<std::int64_t>& tokens = expanded_.phases[*rollout_].rollout.tokens;
    const std::int64_t cp = integer_of(written.settings(), kContext, 1),
                       parts = cp * integer_of(written.settings(), kTensor, 1);
    const std::int64_t padded = cp > 1 ? 2 * parts : parts;  // ranks of a context have two blocks of it
    const std::int64_t response =
        over(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}), rollout.samples());
    const std::int64_t sequence = over(rollout.prompt_tokens + response, padded) * padded;
    derived.set(kSequence, sequence,
                fmt::format("prompts of {} and responses of {} tokens on average of '{}', padded to a multiple of {}",
                            rollout.prompt_tokens, response, phases()[*rollout_].name, padded));
    note(phase, fmt::format("{}={}", kSequence, sequence));
  }

  void add_rollout(const Phase& phase, const WrittenSettings& written, const DerivedSettings& cluster,
                   std::int64_t replicas, RolloutExperiments& to) {
    const Rollout& rollout = phase.rollout;
    to.replicas = replicas;
    for (const auto& tokens : dealt_out(to.tokens, replicas))
      to.decodings.push_back(decoding_of(tokens, rollout.prompt_tokens, rollout.concurrent));
    to.grid = decoding_grid(to.decodings);
    note_rollout(phase, written, to);
    const auto add_step = [&](const char* what, std::int64_t samples, std::int64_t sequence, std::int64_t cached) {
      return sweep_.add(phase, fmt::format("{} {}x{}", what, samples, std::max(cached, sequence)), written,
                        {cluster, replica_settings(phase, written),
                         pass_settings(phase, written, replicas, DecodingPoint{samples, cached}, sequence)});
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
    to.is_pipeline = config(to.prefill_one).configuration.strategy.pp > 1;
  }

  void note_rollout(const Phase& phase, const WrittenSettings& written, const RolloutExperiments& rollout) {
    const std::int64_t most = phase.rollout.lengths.max_tokens,
                       ended = std::count(rollout.tokens.begin(), rollout.tokens.end(), most);
    if (ended > 0)
      note(phase, fmt::format("{} of {} responses end at max_tokens {}", ended, phase.rollout.samples(), most));
    if (!says_graphs(written)) note(phase, "strategy.stack.cuda_graphs=all of decoding steps");
    const DerivedSettings derived = replica_settings(phase, written);
    note_replaced(phase, written, derived);
    const std::string* copies = derived.origin_of(kKeyHeads);
    if (copies != nullptr && !written.say(kKeyHeads)) note(phase, *copies);
  }

  /// Returns an experiment with the strategy of a phase.
  std::uint32_t any_of(std::size_t phase) const {
    const PhaseExperiments& experiments = expanded_.phases[phase];
    return experiments.step ? *experiments.step : experiments.rollout.prefill_one;
  }

  /// Returns the GPUs of the cluster that a pool has: pools lie one after the other.
  std::uint32_t first_gpu_of(std::size_t pool) const {
    return static_cast<std::uint32_t>(
        std::accumulate(expanded_.gpus_of_pools.begin(),
                        expanded_.gpus_of_pools.begin() + static_cast<std::ptrdiff_t>(pool), std::int64_t{0}));
  }

  /// Returns the pool of a phase; on the cluster of `base`, or on the pool's own GPUs.
  PoolOfModel pool_of_model(std::size_t phase, bool alone) const {
    const std::size_t pool = phases()[phase].pool;
    return {config(any_of(phase)), alone ? 0 : first_gpu_of(pool), expanded_.gpus_of_pools[pool]};
  }

  void add_transfer(std::size_t index) {
    const Phase& phase = phases()[index];
    TransferExperiments& to = expanded_.phases[index].transfer;
    const std::size_t from = *phase.from, target = phase.to;
    const bool is_shared = phases()[from].pool == phases()[target].pool;
    check_same_model(phase, "to", from, target);
    for (const auto& [end, key] : {std::pair{from, "from"}, {target, "to"}})
      if (written_[end].change_says(kCluster))
        expanded_.file.fail(
            phase, key,
            fmt::format("'{}' has a cluster of its own, and weights go over that of 'base'", phases()[end].name));
    const PoolOfModel trained = pool_of_model(from, is_shared), used = pool_of_model(target, is_shared);
    const BroadcastGroup group = phase.all_trainers ? BroadcastGroup::all_trainers : BroadcastGroup::first_trainer;
    const WeightsRoute route =
        is_shared ? route_on_same_gpus(trained, used) : route_to_other_gpus(trained, used, group);
    expanded_.phases[index].gpus = used.gpus + (is_shared ? 0 : trained.gpus);
    to.weight_bytes = kWeightBytes * core::workload::model_parameters(merged_model(sweep_.experiment(any_of(from))));
    to.merged_rank = trained.config.configuration.model.lora_rank;
    if (!route.moves()) return;
    to.gathered_over = route.gatherers.empty() ? 1 : ranks_with_model(trained.config.configuration.strategy);
    to.receivers = std::max<std::int64_t>(static_cast<std::int64_t>(route.receivers.size()) - 1, 0);
    to.buckets = over(to.weight_bytes, phase.bucket_bytes);
    to.bucket_bytes = over(to.weight_bytes, to.buckets);
    add_bucket(index, route, is_shared ? used.gpus : gpus_of(base_.settings()));
  }

  void add_bucket(std::size_t index, const WeightsRoute& route, std::int64_t gpus) {
    const Phase& phase = phases()[index];
    TransferExperiments& to = expanded_.phases[index].transfer;
    std::vector<DerivedSettings> derived;
    if (gpus != gpus_of(base_.settings()))
      derived.push_back(part_of_cluster(expanded_.file, phases()[phase.to], base_.settings(), gpus));
    const std::string path = fmt::format("weights of phase {}", index + 1);
    DerivedSettings program(phase.place);
    program.set("program.file", path, "its route");
    if (!route.receivers.empty() && !base_.say(kChunk)) {
      program.set(kChunk, kPipelinedBytes, "NCCL's buffer of a channel");
      note(phase, fmt::format("{}={}", kChunk, kPipelinedBytes));
    }
    derived.push_back(program);
    to.bucket = sweep_.add(phase, "bucket", base_, derived, {{path, weights_program(route, to.bucket_bytes)}});
  }

  ExpandedPhases expanded_;
  const TextsByPath& tables_;
  Node set_;  // what --set says
  ExtendedCatalog catalog_;
  WrittenSettings base_;  // of all phases
  PhaseSweep sweep_;
  std::vector<WrittenSettings> written_;  // of each phase
  std::optional<std::size_t> rollout_;    // the first phase that generates
};

}  // namespace

ExpandedPhases expand(PhasesFile file, const std::vector<std::string>& overrides, const Catalog& catalog,
                      const TextsByPath& tables) {
  return Expansion(std::move(file), overrides, catalog, tables).run();
}

bool is_of_phases(const Sweep& sweep) {
  return sweep.columns.size() == 2 && sweep.columns[0].name == "phase" && sweep.columns[1].name == "part";
}

ExpandedPhases expand_again(const Sweep& sweep, const Catalog& catalog) {
  PhasesFile file = parse_phases(sweep.text, sweep.name + ".yaml");
  const TextsByPath none;
  const TextsByPath& tables = sweep.inputs ? static_cast<const TextsByPath&>(*sweep.inputs) : none;
  ExpandedPhases expanded = expand(std::move(file), sweep.overrides, catalog, tables);
  if (serialize(expanded.sweep) != serialize(sweep))
    throw core::InputError("its document has become other experiments since", sweep.name);
  return expanded;
}

}  // namespace manyworlds::experiments::phases
