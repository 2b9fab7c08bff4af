#include "farm/sweep_job.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/sharing/bytes.hpp"
#include "io/cpu_time.hpp"

namespace manyworlds::farm {

using core::step::IsolatedResults;
using core::step::Use;
using core::step::World;
using io::cpu_s;

std::string encode(const CollectiveResult& result) {
  return core::sharing::ByteWriter()
      .integer(result.effort.link_hops.simulated)
      .integer(result.effort.link_hops.periods)
      .integer(result.effort.link_hops.rate)
      .real(result.effort.cpu_s)
      .text(core::step::encode(result.result))
      .take();
}

CollectiveResult decode_collective(const std::string& bytes) {
  core::sharing::ByteReader in(bytes);
  CollectiveResult result;
  for (auto* hops :
       {&result.effort.link_hops.simulated, &result.effort.link_hops.periods, &result.effort.link_hops.rate})
    *hops = in.integer();
  result.effort.cpu_s = in.real();
  result.result = core::step::decode_isolated(in.text());
  in.end();
  return result;
}

std::string frozen_job(const experiments::Sweep& sweep, bool share) {
  auto frozen = nlohmann::json::parse(experiments::freeze(sweep));
  frozen["sharing"] = share;
  return frozen.dump() + "\n";
}

bool shares(const std::string& frozen) {
  try {
    return nlohmann::json::parse(frozen).at("sharing").get<bool>();
  } catch (const nlohmann::json::exception& error) {
    throw core::InputError(fmt::format("frozen sweep: {}", error.what()));
  }
}

SweepJob::SweepJob(const std::string& frozen)
    : sweep_(experiments::thaw(frozen)),
      laboratory_(shares(frozen)),
      plan_(make_plan(sweep_, shares(frozen), graphs_, laboratory_)),
      tasks_(tasks_of(plan_, shares(frozen))) {}

const World& SweepJob::world(std::uint32_t experiment) {
  if (!world_ || experiment_of_world_ != experiment) {
    world_ = std::make_unique<World>(laboratory_.world(configure(sweep_.experiments.at(experiment), graphs_)));
    experiment_of_world_ = experiment;
  }
  return *world_;
}

std::string SweepJob::run(std::uint32_t number, std::span<const std::string> inputs) {
  MANYWORLDS_CHECK(number < tasks_.size(), "task {} of {}", number, tasks_.size());
  const auto collectives = static_cast<std::uint32_t>(plan_.collectives.size());
  return plan_.is_step(number) ? run_step(plan_.steps[number - collectives], inputs)
                               : run_collective(plan_.collectives[number]);
}

std::string SweepJob::run_collective(const PlannedCollective& collective) {
  const double begin = cpu_s();
  const core::network::LinkHops hops = laboratory_.link_hops();
  const World& in = world(collective.experiment);
  const Use& use = in.uses().at(collective.use);
  MANYWORLDS_CHECK(use.key == collective.key, "use {} of experiment {} is {}, not {}", collective.use,
                   collective.experiment, use.key.hex(), collective.key.hex());
  CollectiveResult made{laboratory_.isolated(in, use), {}};
  made.effort = {laboratory_.link_hops() - hops, cpu_s() - begin};
  return encode(made);
}

std::string SweepJob::run_step(const PlannedStep& step, std::span<const std::string> inputs) {
  const double begin = cpu_s();
  MANYWORLDS_CHECK(inputs.size() == step.collectives.size(), "{} inputs for {} collectives", inputs.size(),
                   step.collectives.size());
  IsolatedResults known;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    known[plan_.collectives[step.collectives[i]].key] =
        std::make_shared<core::step::IsolatedResult>(decode_collective(inputs[i]).result);
  core::step::StepResult result = laboratory_.run(world(step.experiment), known);
  result.cpu_s = cpu_s() - begin;
  return core::step::encode(result);
}

std::unique_ptr<Job> make_sweep_job(const std::string& frozen) {
  return std::make_unique<SweepJob>(frozen);
}

}  // namespace manyworlds::farm
