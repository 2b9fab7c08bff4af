#include "farm/phases/phases_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/plural.hpp"
#include "farm/texts/step_text.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::phases {
namespace {

using namespace experiments::phases;
using Json = nlohmann::ordered_json;

std::string time_text(double seconds) {
  return io::with_si_prefix(seconds, "s");
}

std::string count_text(double value) {
  return io::group_digits(std::round(value));
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

const std::string& kind_of(const Phase& phase) {
  return kind_names().at(static_cast<std::size_t>(phase.kind));
}

std::string pools_text(const PhasesFile& file, const Phase& phase) {
  const std::string& own = file.pools[phase.pool].name;
  if (phase.kind != Kind::transfer || file.phases[*phase.from].pool == phase.pool) return own;
  return file.pools[file.phases[*phase.from].pool].name + ", " + own;
}

class Text {
 public:
  Text(const ExpandedPhases& expanded, const Iteration& iteration) : expanded_(expanded), iteration_(iteration) {}

  std::string all() const {
    if (iteration_.problem() != nullptr) return problems();
    return headline() + "\n" + phases_table() + "\n" + pools_table() + "\n" + notes();
  }

 private:
  const PhasesFile& file() const { return expanded_.file; }
  bool is_synchronous() const { return file().schedule == Schedule::synchronous; }

  std::string problems() const {
    std::string text = fmt::format("{}: no prediction, as not all of its experiments ran\n", file().title);
    for (std::size_t i = 0; i < file().phases.size(); ++i)
      if (const std::string& problem = iteration_.phases[i].problem; !problem.empty())
        text += fmt::format("phase {}: {}\n", file().phases[i].name, problem);
    return text;
  }

  bool is_analytic() const {
    const auto config = expanded_.sweep.experiments.front().config();
    return config.configuration.transport.fidelity == core::network::Fidelity::analytic;
  }

  std::string headline() const {
    std::string text = fmt::format("{}: {} iteration takes {} on {} {}{}", file().title,
                                   is_synchronous() ? "a synchronous" : "an asynchronous",
                                   time_text(iteration_.composition.iteration_s), iteration_.gpus,
                                   core::plural(static_cast<std::uint64_t>(iteration_.gpus), "GPU"),
                                   is_analytic() ? " (analytic: no queueing on links)" : "");
    if (iteration_.samples > 0)
      text += fmt::format("; {} samples, {} samples/s", count_text(iteration_.samples),
                          io::with_si_prefix(iteration_.samples_per_s(), ""));
    return text + fmt::format(", {} tokens/s\n", io::with_si_prefix(iteration_.tokens_per_s(), ""));
  }

  std::string phases_table() const {
    std::vector<std::vector<std::string>> lines{
        {"phase", "kind", "pool", "GPUs", "begins", "time", "share", "tokens/s/GPU", "memory", ""}};
    for (std::size_t i = 0; i < file().phases.size(); ++i) {
      const Phase& phase = file().phases[i];
      const PhaseResult& result = iteration_.phases[i];
      const std::int64_t gpus = expanded_.phases[i].gpus;
      const bool has_tokens = phase.has_experiment();
      const PhaseMemory& memory = result.memory;
      lines.push_back({phase.name, kind_of(phase), pools_text(file(), phase), std::to_string(gpus),
                       is_synchronous() ? time_text(result.begin_s) : "", time_text(result.time_s),
                       share_text(result.share),
                       has_tokens ? io::with_si_prefix(result.tokens_per_s_per_gpu(gpus), "") : "",
                       has_tokens ? fmt::format("{} of {}", gib_text(memory.total()), gib_text(memory.gpu)) : "",
                       has_tokens && !memory.fits() ? "does not fit" : ""});
    }
    return io::align_columns(lines, {true, true, true, false, false, false, false, false, false, true});
  }

  std::string pools_table() const {
    std::vector<std::vector<std::string>> lines{{"pool", "GPUs", "busy", "idle"}};
    for (std::size_t i = 0; i < file().pools.size(); ++i) {
      const double busy_s = iteration_.composition.busy_s[i];
      lines.push_back({file().pools[i].name, std::to_string(expanded_.gpus_of_pools[i]), time_text(busy_s),
                       share_text(std::max(0.0, 1 - busy_s / iteration_.composition.iteration_s))});
    }
    return io::align_columns(lines, {true, false, false, false});
  }

  std::string notes() const {
    std::string text;
    for (std::size_t i = 0; i < file().phases.size(); ++i) text += notes_of(i);
    if (!expanded_.notes.empty())
      text += fmt::format("set unless the document does: {}\n", fmt::join(expanded_.notes, ", "));
    if (!expanded_.replaced.empty())
      text += fmt::format("set although the document has others: {}\n", fmt::join(expanded_.replaced, "; "));
    text +=
        is_synchronous()
            ? "assumed: a pool works on one phase at a time; what the controller does between phases is not counted\n"
            : "assumed: a steady state in which pools wait for nothing, as weights are one iteration old\n";
    return text + io::assumed_text(expanded_.sweep.assumed);
  }

  std::string notes_of(std::size_t index) const {
    const Phase& phase = file().phases[index];
    const PhaseResult& result = iteration_.phases[index];
    std::string text;
    if (phase.kind == Kind::generation) text += rollout_notes(index);
    if (phase.kind == Kind::transfer) text += transfer_note(index);
    if (phase.steps > 1) text += fmt::format("{}: {} steps of {}\n", phase.name, phase.steps, time_text(result.step_s));
    if (result.host_s > 0)
      text += fmt::format("{}: {} of each rank's weights and states pass the host link, {} of its time\n", phase.name,
                          gib_text(result.host_bytes), time_text(result.host_s));
    if (result.memory.others > 0)
      text += fmt::format("{}: {} beside it are other phases' weights and states, which stay on the GPUs\n", phase.name,
                          gib_text(result.memory.others));
    return text;
  }

  std::string rollout_notes(std::size_t index) const {
    const Phase& phase = file().phases[index];
    const RolloutExperiments& from = expanded_.phases[index].rollout;
    const PhaseResult& result = iteration_.phases[index];
    const RolloutTime& time = *result.rollout;
    std::string text = fmt::format(
        "{}: {} {}; the slowest decodes {} steps in {}, the mean is {}, so that replicas wait for {} of the phase; "
        "prefills are {} on average\n",
        phase.name, from.replicas, core::plural(static_cast<std::uint64_t>(from.replicas), "replica"),
        count_text(static_cast<double>(time.steps)), time_text(time.slowest_s), time_text(time.mean_s),
        share_text(time.waiting()), time_text(time.prefill_s));
    std::size_t simulated = 0;
    for (const auto& column : from.decode) simulated += column.size();
    if (simulated > 0)
      text += fmt::format(
          "{}: decoding steps are interpolated between {} simulated ones; at {} others they are off by {} at most, {} "
          "on average by decoding time\n",
          phase.name, simulated, result.error->steps, share_text(result.error->worst),
          share_text(result.error->weighted));
    text += fmt::format(
        "{}: assumed: a replica decodes while no prompt is prefilled, each prompt is prefilled for each response, the "
        "host schedules in no time, and all tokens are kept\n",
        phase.name);
    if (from.is_pipeline)
      text += fmt::format("{}: assumed: a decoding step passes all pipeline stages before the next one begins\n",
                          phase.name);
    return text;
  }

  std::string transfer_note(std::size_t index) const {
    const Phase& phase = file().phases[index];
    const TransferExperiments& from = expanded_.phases[index].transfer;
    const std::string merged =
        from.merged_rank > 0 ? fmt::format(", into which pairs of rank {} are merged in no time", from.merged_rank)
                             : std::string();
    if (!from.bucket)
      return fmt::format("{}: nothing moves: each rank has what it needs of the {} of weights{}\n", phase.name,
                         gib_text(static_cast<double>(from.weight_bytes)), merged);
    std::string text = fmt::format("{}: {} of weights in bf16{}", phase.name,
                                   gib_text(static_cast<double>(from.weight_bytes)), merged);
    if (from.gathered_over > 1) text += fmt::format(", gathered over {} ranks", from.gathered_over);
    if (from.receivers > 0) text += fmt::format(", broadcast to {} GPUs", from.receivers);
    return text + fmt::format("; {} {} of {}, one after the other, {} each\n", from.buckets,
                              core::plural(static_cast<std::uint64_t>(from.buckets), "bucket"),
                              gib_text(static_cast<double>(from.bucket_bytes)),
                              time_text(iteration_.phases[index].step_s));
  }

  const ExpandedPhases& expanded_;
  const Iteration& iteration_;
};

Json rollout_json(const RolloutExperiments& from, const PhaseResult& result) {
  if (!result.rollout) return {};
  const RolloutTime& time = *result.rollout;
  return {{"replicas", from.replicas},
          {"slowest_replica", time.slowest},
          {"slowest_s", time.slowest_s},
          {"mean_s", time.mean_s},
          {"waiting", time.waiting()},
          {"prefill_s", time.prefill_s},
          {"decoding_steps", time.steps},
          {"interpolation_error_worst", result.error->worst},
          {"interpolation_error_weighted", result.error->weighted},
          {"interpolation_checks", result.error->steps}};
}

Json transfer_json(const TransferExperiments& from) {
  return {{"weight_bytes", from.weight_bytes},
          {"buckets", from.buckets},
          {"bucket_bytes", from.buckets > 0 ? from.bucket_bytes : 0},
          {"gathered_over", from.gathered_over},
          {"receivers", from.receivers},
          {"merged_rank", from.merged_rank}};
}

Json phase_json(const ExpandedPhases& expanded, const Iteration& iteration, std::size_t index) {
  const PhasesFile& file = expanded.file;
  const Phase& phase = file.phases[index];
  const PhaseResult& result = iteration.phases[index];
  const bool ran = result.problem.empty();
  Json object{{"phase", phase.name},
              {"kind", kind_of(phase)},
              {"pool", pools_text(file, phase)},
              {"gpus", expanded.phases[index].gpus},
              {"steps", phase.steps},
              {"problem", ran ? Json() : Json(result.problem)},
              {"begin_s", iteration.composition.begins.empty() ? Json() : Json(result.begin_s)},
              {"time_s", ran ? Json(result.time_s) : Json()},
              {"share", iteration.problem() == nullptr ? Json(result.share) : Json()}};
  if (phase.kind == Kind::transfer) {
    object["transfer"] = transfer_json(expanded.phases[index].transfer);
    return object;
  }
  object["tokens"] = result.tokens;
  object["tokens_per_s_per_gpu"] = ran ? Json(result.tokens_per_s_per_gpu(expanded.phases[index].gpus)) : Json();
  object["memory_peak_bytes"] = result.memory.peak;
  object["memory_others_bytes"] = result.memory.others;
  object["memory_resident_bytes"] = result.memory.resident;
  object["gpu_memory_bytes"] = result.memory.gpu;
  object["fits"] = result.memory.fits();
  object["host_bytes"] = result.host_bytes;
  object["host_s"] = result.host_s;
  if (phase.kind == Kind::generation) object["rollout"] = rollout_json(expanded.phases[index].rollout, result);
  return object;
}

}  // namespace

std::string iteration_text(const ExpandedPhases& expanded, const Iteration& iteration) {
  return Text(expanded, iteration).all();
}

std::string iteration_json(const ExpandedPhases& expanded, const Iteration& iteration) {
  const bool ran = iteration.problem() == nullptr;
  Json object{{"name", expanded.file.title},
              {"schedule", expanded.file.schedule == Schedule::synchronous ? "synchronous" : "asynchronous"},
              {"gpus", iteration.gpus},
              {"iteration_s", ran ? Json(iteration.composition.iteration_s) : Json()},
              {"samples", iteration.samples},
              {"samples_per_s", ran ? Json(iteration.samples_per_s()) : Json()},
              {"tokens", iteration.tokens},
              {"tokens_per_s", ran ? Json(iteration.tokens_per_s()) : Json()},
              {"phases", Json::array()},
              {"pools", Json::array()},
              {"set", expanded.notes},
              {"replaced", expanded.replaced},
              {"assumed", expanded.sweep.assumed}};
  for (std::size_t i = 0; i < expanded.file.phases.size(); ++i)
    object["phases"].push_back(phase_json(expanded, iteration, i));
  for (std::size_t i = 0; ran && i < expanded.file.pools.size(); ++i)
    object["pools"].push_back({{"pool", expanded.file.pools[i].name},
                               {"gpus", expanded.gpus_of_pools[i]},
                               {"busy_s", iteration.composition.busy_s[i]},
                               {"idle", 1 - iteration.composition.busy_s[i] / iteration.composition.iteration_s}});
  return object.dump(1) + "\n";
}

}  // namespace manyworlds::farm::phases
