#include "farm/plan/sweep_runner.hpp"

#include "core/base/error.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/plan/plan.hpp"
#include "io/process/cpu_time.hpp"

namespace manyworlds::farm {

using core::step::CompiledStep;
using io::cpu_s;

SweepRunner::SweepRunner(const std::string& common, const RunnerOptions& options)
    : SweepRunner(decode_common(common), options) {}

SweepRunner::SweepRunner(const SweepSharedSettings& common, const RunnerOptions& options)
    : share_(common.share),
      common_(experiments::deserialize_common(common.settings)),
      pool_(options.threads > 1 || options.remote != nullptr
                ? std::make_unique<ThreadPool>(options.threads, options.remote)
                : nullptr),
      kept_(options.components.empty() || !common.share ? nullptr
                                                        : std::make_unique<KeptComponents>(options.components)),
      context_(common.share, pool_.get(), kept_.get()) {}

core::step::Configuration SweepRunner::configure(const std::string& settings) {
  return experiments::configure(experiments::deserialize_own_settings(settings, common_), graphs_);
}

/// Returns which ranks of a configuration are simulated.
core::step::Ranks SweepRunner::ranks_of(const core::step::Configuration& configuration) const {
  const bool all_ranks = recording_ != nullptr || !core::step::can_deduplicate_ranks(configuration);
  return all_ranks ? core::step::Ranks::all : core::step::Ranks::representatives;
}

const CompiledStep& SweepRunner::compile(const core::step::Configuration& configuration, const std::string& settings) {
  if (!compiled_ || settings_ != settings) {
    compiled_ = std::make_unique<CompiledStep>(context_.compile(configuration, ranks_of(configuration)));
    settings_ = settings;
  }
  return *compiled_;
}

std::string SweepRunner::run(const std::string& spec, std::span<const std::string> inputs) {
  const SweepTaskSpec decoded = decode_task_spec(spec);
  if (decoded.kind == SweepTaskSpec::Kind::collective) return run_collective(decoded);
  return decoded.kind == SweepTaskSpec::Kind::step ? run_step(decoded, inputs) : run_bound(decoded);
}

std::string SweepRunner::run_collective(const SweepTaskSpec& spec) {
  const double begin = cpu_s();
  const core::network::LinkHops hops = context_.link_hops();
  const core::step::Configuration configuration = configure(spec.settings);
  CollectiveResult result{context_.isolated(configuration, spec.shape, spec.group, spec.key), {}};
  result.effort = {context_.link_hops() - hops, cpu_s() - begin};
  return encode(result);
}

std::string SweepRunner::run_bound(const SweepTaskSpec& spec) {
  const double begin = cpu_s();
  const core::step::Configuration configuration = bound_of(configure(spec.settings));
  core::step::IsolatedResults local_results;
  core::step::StepResult result =
      context_.run(context_.compile(configuration, ranks_of(configuration)), share_ ? analytic_ : local_results);
  result.cpu_s = cpu_s() - begin;
  return core::step::encode(result);
}

std::string SweepRunner::run_step(const SweepTaskSpec& spec, std::span<const std::string> inputs) {
  const double begin = cpu_s();
  MANYWORLDS_CHECK(inputs.size() == spec.inputs.size(), "{} inputs for {} collectives", inputs.size(),
                   spec.inputs.size());
  const core::step::Configuration configuration = configure(spec.settings);
  if (share_ && recording_ == nullptr && configuration.transport.fidelity == core::network::Fidelity::fluid) {
    core::step::StepResult result = context_.run_fluids(configuration, ranks_of(configuration), reached_);
    result.cpu_s = cpu_s() - begin;
    return core::step::encode(result);
  }
  const CompiledStep& compiled = compile(configuration, spec.settings);
  core::step::IsolatedResults local_results;
  const bool cached = share_ && compiled.transport().fidelity != core::network::Fidelity::packet;
  core::step::IsolatedResults& known = cached ? analytic_ : local_results;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    known[spec.inputs[i]] = std::make_shared<core::step::IsolatedResult>(decode_collective(inputs[i]).result);
  core::step::StepResult result = context_.run(compiled, known, recording_, reached_);
  result.cpu_s = cpu_s() - begin;
  return core::step::encode(result);
}

}  // namespace manyworlds::farm
