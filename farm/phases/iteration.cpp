#include "farm/phases/iteration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "farm/texts/step_text.hpp"

namespace manyworlds::farm::phases {
namespace {

using namespace experiments::phases;

constexpr double kBytesPerGb = 1e9;

/// Reads the results of experiments by id.
class Rows {
 public:
  explicit Rows(const io::Results& results) : results_(results) {}

  ResultRow row(std::uint32_t id) const { return {results_.experiments, id}; }
  /// Returns the step time; if it did not run, NaN, and why.
  double time_s(std::uint32_t id, std::string& problem) const {
    const ResultRow one = row(id);
    if (one.ran()) return one.number("step_time_s");
    if (problem.empty()) problem = fmt::format("{}: {}: {}", one.text("part"), one.text("status"), one.text("reason"));
    return std::nan("");
  }
  double bytes(std::uint32_t id, const char* column) const {
    const double value = row(id).number(column);
    return std::isnan(value) ? 0 : value;
  }

 private:
  const io::Results& results_;
};

class Composer {
 public:
  Composer(const ExpandedPhases& expanded, const io::Results& results) : expanded_(expanded), rows_(results) {}

  Iteration run() {
    iteration_.phases.resize(phases().size());
    for (const std::int64_t gpus : expanded_.gpus_of_pools) iteration_.gpus += gpus;
    for (std::size_t i = 0; i < phases().size(); ++i) add_times(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) add_memory(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) add_host(i);
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (phases()[i].has_experiment()) add_others(i);
    compose();
    return std::move(iteration_);
  }

 private:
  const std::vector<Phase>& phases() const { return expanded_.file.phases; }

  void add_times(std::size_t index) {
    const Phase& phase = phases()[index];
    const PhaseExperiments& from = expanded_.phases[index];
    PhaseResult& to = iteration_.phases[index];
    if (phase.kind == Kind::generation) return add_rollout(phase, from.rollout, to);
    if (phase.kind == Kind::transfer) {
      if (from.transfer.bucket) to.step_s = rows_.time_s(*from.transfer.bucket, to.problem);
      to.time_s = to.step_s * static_cast<double>(from.transfer.buckets);
      return;
    }
    to.step_s = rows_.time_s(*from.step, to.problem);
    to.time_s = to.step_s * static_cast<double>(phase.steps);
    const auto config = expanded_.sweep.experiments.at(*from.step).config();
    to.tokens = static_cast<double>(phase.steps * config.configuration.strategy.global_batch) *
                static_cast<double>(config.configuration.model.sequence);
  }

  void add_rollout(const Phase& phase, const RolloutExperiments& from, PhaseResult& to) {
    std::vector<std::vector<double>> seconds;
    for (const auto& column : from.decode) {
      seconds.emplace_back();
      for (const std::uint32_t id : column) seconds.back().push_back(rows_.time_s(id, to.problem));
    }
    const DecodingTimes decoding(from.grid, seconds);
    const PrefillTimes prefill{rows_.time_s(from.prefill_one, to.problem), rows_.time_s(from.prefill_many, to.problem),
                               from.prefill_samples};
    if (!to.problem.empty()) return;
    to.rollout = rollout_time(from.decodings, from.grid, decoding, prefill);
    to.time_s = to.rollout->slowest_s;
    to.tokens = std::accumulate(from.tokens.begin(), from.tokens.end(), 0.0);
    iteration_.samples += static_cast<double>(phase.rollout.samples());
    iteration_.tokens +=
        to.tokens + static_cast<double>(phase.rollout.samples()) * static_cast<double>(phase.rollout.prompt_tokens);
    to.error = error_of(from, decoding, *to.rollout);
  }

  InterpolationError error_of(const RolloutExperiments& from, const DecodingTimes& decoding, const RolloutTime& time) {
    InterpolationError error;
    double weights = 0;
    for (std::size_t i = 0; i < from.checks.size(); ++i) {
      std::string problem;
      const double simulated_s = rows_.time_s(from.checks[i], problem);
      if (!problem.empty()) continue;
      const DecodingPoint& point = from.grid.checks[i];
      const double off = std::abs(decoding.step_s(point.samples, static_cast<double>(point.length)) / simulated_s - 1);
      const double weight = time.share_of_cells[from.grid.below(point.samples)];
      error.worst = std::max(error.worst, off);
      error.weighted += weight * off;
      weights += weight;
      ++error.steps;
    }
    if (weights > 0) error.weighted /= weights;
    return error;
  }

  /// Returns the ids of a phase's experiments.
  std::vector<std::uint32_t> experiments_of(std::size_t index) const {
    const PhaseExperiments& from = expanded_.phases[index];
    if (from.step) return {*from.step};
    std::vector<std::uint32_t> ids{from.rollout.prefill_one, from.rollout.prefill_many};
    for (const auto& column : from.rollout.decode) ids.insert(ids.end(), column.begin(), column.end());
    return ids;
  }

  bool is_alone(std::size_t index) const {
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (i != index && phases()[i].has_experiment() && phases()[i].pool == phases()[index].pool) return false;
    return true;
  }
  bool is_resident(std::size_t index) const {
    return phases()[index].resident.value_or(phases()[index].kind == Kind::training || is_alone(index));
  }

  void add_memory(std::size_t index) {
    PhaseMemory& memory = iteration_.phases[index].memory;
    for (const std::uint32_t id : experiments_of(index)) {
      memory.peak = std::max(memory.peak, rows_.bytes(id, "memory_peak_bytes"));
      memory.gpu = rows_.bytes(id, "gpu_memory_bytes");
    }
    if (is_resident(index) && !phases()[index].from) memory.resident = states_of(index);
  }

  /// Returns the bytes of its weights, and of the optimizer's states.
  double states_of(std::size_t index) const {
    const std::uint32_t id = experiments_of(index).front();
    return rows_.bytes(id, "memory_weights_bytes") + rows_.bytes(id, "memory_optimizer_bytes");
  }

  bool gets_weights(std::size_t index) const {
    return std::any_of(phases().begin(), phases().end(),
                       [&](const Phase& one) { return one.kind == Kind::transfer && one.to == index; });
  }

  /// What is not resident comes from the host before the phase; what a step changed goes there behind it. Weights that
  /// a transfer brings, or that are another phase's, do not.
  void add_host(std::size_t index) {
    const Phase& phase = phases()[index];
    PhaseResult& to = iteration_.phases[index];
    const bool are_there = phase.from && is_resident(*phase.from) && phases()[*phase.from].pool == phase.pool;
    if (is_resident(index) || is_alone(index) || are_there || gets_weights(index)) return;
    to.host_bytes = states_of(index) * (phase.kind == Kind::training ? 2 : 1);
    const auto config = expanded_.sweep.experiments.at(experiments_of(index).front()).config();
    to.host_s = to.host_bytes / (config.configuration.gpu.host_gb_per_s * kBytesPerGb);
    to.time_s += to.host_s;
  }

  void add_others(std::size_t index) {
    PhaseResult& to = iteration_.phases[index];
    const Phase& phase = phases()[index];
    for (std::size_t i = 0; i < phases().size(); ++i)
      if (i != index && phases()[i].has_experiment() && phases()[i].pool == phase.pool)
        to.memory.others += iteration_.phases[i].memory.resident;
    if (!phase.from || phases()[*phase.from].pool != phase.pool || !is_resident(*phase.from)) return;
    to.memory.others -= std::min(to.memory.others, rows_.bytes(experiments_of(index).front(), "memory_weights_bytes"));
  }

  void compose() {
    if (iteration_.problem() != nullptr) return;
    std::vector<TimedPhase> timed;
    for (std::size_t i = 0; i < phases().size(); ++i) {
      timed.push_back({iteration_.phases[i].time_s, {phases()[i].pool}, phases()[i].after});
      if (phases()[i].kind == Kind::transfer && phases()[*phases()[i].from].pool != phases()[i].pool)
        timed.back().pools.push_back(phases()[*phases()[i].from].pool);
    }
    const std::size_t pools = expanded_.file.pools.size();
    iteration_.composition =
        expanded_.file.schedule == Schedule::synchronous ? synchronous(timed, pools) : asynchronous(timed, pools);
    for (std::size_t i = 0; i < phases().size(); ++i) {
      PhaseResult& to = iteration_.phases[i];
      to.share = to.time_s / iteration_.composition.iteration_s;
      if (!iteration_.composition.begins.empty()) to.begin_s = iteration_.composition.begins[i];
      if (iteration_.samples > 0 || phases()[i].kind != Kind::training) continue;
      trained_ += to.tokens;
    }
    if (iteration_.samples == 0) iteration_.tokens = trained_;
  }

  const ExpandedPhases& expanded_;
  Rows rows_;
  Iteration iteration_;
  double trained_ = 0;
};

}  // namespace

const PhaseResult* Iteration::problem() const {
  const auto found =
      std::find_if(phases.begin(), phases.end(), [](const PhaseResult& one) { return !one.problem.empty(); });
  return found == phases.end() ? nullptr : &*found;
}

Iteration iteration_of(const ExpandedPhases& expanded, const io::Results& results) {
  return Composer(expanded, results).run();
}

}  // namespace manyworlds::farm::phases
