#include "farm/sweep/standing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "io/ranking/sweep_facts.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kRowsAtOnce = 64;
// Of each ranked row, with those of a Ranking; and what it is ranked by.
constexpr std::array<const char*, 6> kTold{
    "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu", "memory_peak_bytes"};

/// A rank for an id that looks like chance and is the same in every run.
std::uint64_t shuffled(std::uint32_t id) {
  return core::splitmix64(id * core::kSplitMixIncrement);
}

/// Not cut inside a character.
std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " …";
}

std::uint32_t id_at(const io::Results& rows, std::size_t row) {
  const io::Column* ids = rows.experiments.find("id");
  MANYWORLDS_CHECK(ids, "an answer without a column {}", "id");
  return static_cast<std::uint32_t>(std::get<std::vector<std::int64_t>>(ids->values).at(row));
}

}  // namespace

Standing::Standing(const SweepJob& job)
    : job_(job),
      uncertainty_(experiments::Uncertainty::compiled()),
      experiments_of_(job.plan().steps.size()),
      taken_in_(job.plan().experiments.size()) {
  for (std::uint32_t id = 0; id < job.plan().experiments.size(); ++id) {
    const PlannedExperiment& planned = job.plan().experiments[id];
    if (planned.elsewhere) continue;
    ++total_;
    if (planned.fits())
      experiments_of_.at(planned.step).push_back(id);
    else
      ++out_of_memory_;
  }
}

void Standing::settled(std::uint32_t task, const Outcome& outcome) {
  const Plan& plan = job_.plan();
  if (!outcome.ok() && outcome.status != Status::input) {
    failures_.push_back({task, outcome.status, shortened(outcome.bytes, kReasonBytes)});
    if (failures_.size() > kFailures) failures_.pop_front();
  }
  if (!plan.is_step(task)) {
    if (outcome.ok() && outcome.elapsed_us > 0)
      simulated_ += static_cast<double>(decode_collective(outcome.bytes).effort.link_hops.simulated);
    return;
  }
  const std::uint32_t step = task - plan.task_of_step(0);
  const std::size_t experiments = experiments_of_[step].size();
  if (!outcome.ok()) {
    failed_ += experiments;
    return;
  }
  const auto result = core::step::decode_step(outcome.bytes);
  transferred_ += static_cast<double>(result.link_hops) * static_cast<double>(experiments);
  if (outcome.elapsed_us > 0) simulated_ += static_cast<double>(result.computed.simulated);
  (result.too_large ? too_large_ : ran_) += experiments;
  if (!result.too_large) waiting_.insert(waiting_.end(), experiments_of_[step].begin(), experiments_of_[step].end());
}

/// Experiments that have settled, with the best so far beside them: ranks are among rows.
std::vector<std::uint32_t> Standing::next_rows() {
  std::vector<std::uint32_t> ids = best_;
  for (; !waiting_.empty() && ids.size() < kRowsAtOnce; waiting_.pop_front()) ids.push_back(waiting_.front());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void Standing::catch_up(const OutcomeOf& outcome, steady_clock::duration most) {
  const auto begin = steady_clock::now();
  while (!waiting_.empty() && steady_clock::now() - begin < most)
    take_in(rows_of(job_.sweep(), job_.plan(), outcome, uncertainty_, next_rows()));
}

void Standing::take_in_all(const io::Results& rows) {
  waiting_.clear();
  take_in(rows);
}

void Standing::take_in(const io::Results& rows) {
  const io::Ranking ranking = io::rank_experiments(rows, {kRanked, job_.sweep().objective, ""});
  ranking_ = {{"by", ranking.by}, {"descending", ranking.descending}, {"rows", nlohmann::json::array()}};
  best_.clear();
  for (const io::Ranking::Row& row : ranking.rows) {
    best_.push_back(id_at(rows, row.row));
    nlohmann::json told{{"id", best_.back()},
                        {"layout", row.layout},
                        {"lost_to", row.lost_to},
                        {"lost_share", row.lost_share},
                        {"from_best", io::name_of(row.apart)}};
    const auto tell = [&](const std::string& name) {
      if (const io::Column* column = rows.experiments.find(name)) told[name] = column->number_at(row.row);
    };
    for (const char* name : kTold) tell(name);
    tell(ranking.by);
    ranking_["rows"].push_back(std::move(told));
  }
  take_in_points(rows);
}

void Standing::take_in_points(const io::Results& rows) {
  const io::Column* speed = rows.experiments.find("tokens_per_s_per_gpu");
  const io::Column* memory = rows.experiments.find("memory_peak_bytes");
  MANYWORLDS_CHECK(speed && memory, "an answer of {} columns without throughput or memory",
                   rows.experiments.columns.size());
  std::vector<std::pair<Point, std::size_t>> points;  // with their rows
  for (Point& point : front_) points.emplace_back(std::move(point), rows.experiments.rows());
  for (std::size_t row = 0; row < rows.experiments.rows(); ++row) {
    const Point point{id_at(rows, row), speed->number_at(row), memory->number_at(row), ""};
    if (std::isnan(point.speed) || taken_in_.at(point.id)) continue;
    taken_in_[point.id] = true;
    ++ranked_;
    cloud_.emplace(shuffled(point.id), point);
    if (cloud_.size() > kCloud) cloud_.erase(std::prev(cloud_.end()));
    points.emplace_back(point, row);
  }
  std::sort(points.begin(), points.end(), [](const auto& left, const auto& right) {
    const Point &a = left.first, &b = right.first;
    if (a.speed != b.speed) return a.speed > b.speed;
    return a.memory != b.memory ? a.memory < b.memory : a.id < b.id;
  });
  front_.clear();
  const io::Axes axes(rows);
  for (auto& [point, row] : points) {
    if (!front_.empty() && point.memory >= front_.back().memory) continue;
    if (row < rows.experiments.rows()) point.layout = axes.layout(row);
    front_.push_back(std::move(point));
  }
}

nlohmann::json Standing::told() const {
  return {{"name", job_.sweep().name},
          {"experiments",
           {{"total", total_},
            {"ran", ran_},
            {"out_of_memory", out_of_memory_},
            {"too_large", too_large_},
            {"failed", failed_},
            {"pending", total_ - ran_ - out_of_memory_ - too_large_ - failed_},
            {"excluded", job_.sweep().excluded.size()}}},
          {"ranking", told_ranking()},
          {"pareto", told_pareto()},
          {"failures", told_failures()}};
}

nlohmann::json Standing::told_ranking() const {
  if (ranking_.is_null()) return nullptr;
  nlohmann::json told = ranking_;
  told["ranked"] = ranked_;
  return told;
}

/// One column per figure: short also for hundreds of points.
nlohmann::json Standing::told_pareto() const {
  struct Columns {
    nlohmann::json id = nlohmann::json::array(), speed = id, memory = id, layout = id;
    void add(const Point& point) {
      id.push_back(point.id), speed.push_back(point.speed), memory.push_back(point.memory);
      layout.push_back(point.layout);
    }
    nlohmann::json told() const { return {{"id", id}, {"tokens_per_s_per_gpu", speed}, {"memory_peak_bytes", memory}}; }
  };
  Columns front, cloud;
  // Both ends of a long front stay, and between them every so many.
  const std::size_t shown = std::min(front_.size(), kFront);
  for (std::size_t i = 0; i < shown; ++i) front.add(front_[shown < 2 ? 0 : i * (front_.size() - 1) / (shown - 1)]);
  for (const auto& [place, point] : cloud_) cloud.add(point);
  nlohmann::json told{{"front", front.told()}, {"front_size", front_.size()}, {"cloud", cloud.told()}};
  told["front"]["layout"] = front.layout;
  return told;
}

nlohmann::json Standing::told_failures() const {
  const Plan& plan = job_.plan();
  nlohmann::json told = nlohmann::json::array();
  for (const Failure& failure : failures_) {
    const bool step = plan.is_step(failure.task);
    told.push_back({{"task", failure.task},
                    {"kind", step ? "steps" : "collectives"},
                    {"class", name_of(failure.status)},
                    {"experiment", step ? plan.steps[failure.task - plan.task_of_step(0)].experiment
                                        : plan.collectives[failure.task].experiment},
                    {"reason", failure.reason}});
  }
  return told;
}

}  // namespace manyworlds::farm
