#include "farm/plan/sweep_runner.hpp"

#include "core/base/error.hpp"
#include "farm/plan/collective_result.hpp"
#include "io/process/cpu_time.hpp"

namespace manyworlds::farm {

using core::step::Use;
using core::step::World;
using io::cpu_s;

SweepRunner::SweepRunner(const std::string& common) : SweepRunner(decode_common(common)) {}

SweepRunner::SweepRunner(const SweepCommon& common)
    : share_(common.share), common_(experiments::thaw_common(common.settings)), laboratory_(common.share) {}

const World& SweepRunner::world(const std::string& settings) {
  if (!world_ || settings_ != settings) {
    const core::step::Configuration of = configure(experiments::thaw_own(settings, common_), graphs_);
    const bool each = recording_ != nullptr || !core::step::one_of_alike_is_enough(of);
    world_ = std::make_unique<World>(laboratory_.world(of, each ? core::step::Ranks::all : core::step::Ranks::unlike));
    settings_ = settings;
  }
  return *world_;
}

std::string SweepRunner::run(const std::string& order, std::span<const std::string> inputs) {
  const SweepOrder decoded = decode_order(order);
  return decoded.kind == SweepOrder::Kind::step ? run_step(decoded, inputs) : run_collective(decoded);
}

std::string SweepRunner::run_collective(const SweepOrder& order) {
  const double begin = cpu_s();
  const core::network::LinkHops hops = laboratory_.link_hops();
  const World& in = world(order.settings);
  const Use& use = in.uses().at(order.use);
  MANYWORLDS_CHECK(use.key == order.key, "use {} is {}, not {}", order.use, use.key.hex(), order.key.hex());
  CollectiveResult made{laboratory_.isolated(in, use), {}};
  made.effort = {laboratory_.link_hops() - hops, cpu_s() - begin};
  return encode(made);
}

std::string SweepRunner::run_step(const SweepOrder& order, std::span<const std::string> inputs) {
  const double begin = cpu_s();
  MANYWORLDS_CHECK(inputs.size() == order.inputs.size(), "{} inputs for {} collectives", inputs.size(),
                   order.inputs.size());
  const World& in = world(order.settings);
  core::step::IsolatedResults own;
  const bool kept = share_ && in.transport().fidelity == core::network::Fidelity::analytic;
  core::step::IsolatedResults& known = kept ? analytic_ : own;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    known[order.inputs[i]] = std::make_shared<core::step::IsolatedResult>(decode_collective(inputs[i]).result);
  core::step::StepResult result = laboratory_.run(in, known, recording_, reached_);
  result.cpu_s = cpu_s() - begin;
  return core::step::encode(result);
}

}  // namespace manyworlds::farm
