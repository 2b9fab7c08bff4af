#include "farm/sweep_job.hpp"

#include <algorithm>
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

namespace {

constexpr const char* kSharing = "sharing";
constexpr const char* kShard = "shard";

}  // namespace

std::string frozen_job(const experiments::Sweep& sweep, const JobTerms& terms) {
  auto frozen = nlohmann::json::parse(experiments::freeze(sweep));
  frozen[kSharing] = terms.share;
  if (!terms.shard.whole()) frozen[kShard] = {terms.shard.number, terms.shard.count};
  return frozen.dump() + "\n";
}

JobTerms terms_of(const std::string& frozen) {
  try {
    const auto all = nlohmann::json::parse(frozen);
    JobTerms terms{all.at(kSharing).get<bool>(), {}};
    if (all.contains(kShard)) terms.shard = {all.at(kShard).at(0), all.at(kShard).at(1)};
    if (terms.shard.number < 1 || terms.shard.number > terms.shard.count)
      throw core::InputError(
          fmt::format("frozen sweep: there is no shard {} of {}", terms.shard.number, terms.shard.count));
    return terms;
  } catch (const nlohmann::json::exception& error) {
    throw core::InputError(fmt::format("frozen sweep: {}", error.what()));
  }
}

std::pair<std::string, Shard> whole_and_shard(const std::string& frozen) {
  // The text is canonical, and inside a text of JSON's the second quotation mark would be escaped.
  const std::string begin = fmt::format("\"{}\":[", kShard), end = "],";
  const auto at = frozen.find(begin);
  if (at == std::string::npos) return {frozen, {}};
  const auto numbers = at + begin.size(), closed = frozen.find(end, numbers);
  if (closed == std::string::npos) throw core::InputError("frozen sweep: its shard is not I,N");
  std::string shard = frozen.substr(numbers, closed - numbers);
  std::replace(shard.begin(), shard.end(), ',', '/');
  return {frozen.substr(0, at) + frozen.substr(closed + end.size()), parse_shard(shard)};
}

SweepJob::SweepJob(const std::string& frozen, const JobTerms& terms)
    : sweep_(experiments::thaw(frozen)),
      laboratory_(terms.share),
      plan_(part_of(make_plan(sweep_, terms.share, graphs_, laboratory_), terms.shard)),
      tasks_(tasks_of(plan_, terms.share)) {}

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
