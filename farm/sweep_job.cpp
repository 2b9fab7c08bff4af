#include "farm/sweep_job.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "farm/sweep_order.hpp"
#include "farm/sweep_runner.hpp"

namespace manyworlds::farm {

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
    : share_(terms.share),
      sweep_(experiments::thaw(frozen)),
      common_(experiments::common_of(sweep_)),
      plan_(part_of(make_plan(sweep_, share_), terms.shard)),
      tasks_(tasks_of(plan_, share_)) {}

std::string SweepJob::common() const {
  return encode(SweepCommon{share_, experiments::freeze(common_)});
}

std::string SweepJob::order(std::uint32_t task) const {
  MANYWORLDS_CHECK(task < tasks_.size(), "task {} of {}", task, tasks_.size());
  SweepOrder made;
  const auto settings = [&](std::uint32_t experiment) {
    return experiments::freeze_own(sweep_.experiments.at(experiment), common_);
  };
  if (plan_.is_step(task)) {
    made.kind = SweepOrder::Kind::step;
    made.settings = settings(plan_.steps[task - plan_.task_of_step(0)].experiment);
    for (const std::uint32_t input : tasks_[task].inputs) made.inputs.push_back(tasks_[input].key);
  } else {
    const PlannedCollective& collective = plan_.collectives[task];
    made.kind = SweepOrder::Kind::collective;
    made.settings = settings(collective.experiment);
    made.key = collective.key;
    made.use = collective.use;
  }
  return encode(made);
}

JobKind sweep_jobs() {
  return {[](const std::string& frozen) { return std::make_unique<SweepJob>(frozen); },
          [](const std::string& common) { return std::make_unique<SweepRunner>(common); }};
}

}  // namespace manyworlds::farm
