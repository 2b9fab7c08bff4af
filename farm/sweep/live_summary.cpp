#include "farm/sweep/live_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/step/run/result.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/results/known_value.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kRowsPerBatch = 64;
// The columns that are reported for each ranked row, beside the members of Ranking::Row and the ranked column.
constexpr std::array<const char*, 6> kRankingColumns{
    "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu", "memory_peak_bytes"};

/// Returns a pseudo-random sort key for an id that is the same in every run.
std::uint64_t shuffle_key(std::uint32_t id) {
  return core::splitmix64(id * core::kSplitMixIncrement);
}

/// Shortens a text without splitting a UTF-8 character.
std::string shortened(const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " …";
}

std::uint32_t id_at(const io::Results& rows, std::size_t row) {
  const io::Column* ids = rows.experiments.find("id");
  MANYWORLDS_CHECK(ids, "an answer without a column {}", "id");
  return static_cast<std::uint32_t>(std::get<std::vector<std::int64_t>>(ids->values).at(row));
}

}  // namespace

LiveSummary::LiveSummary(const SweepJob& job)
    : job_(job),
      uncertainty_(experiments::Uncertainty::compiled()),
      experiments_of_(job.plan().steps.size()),
      is_added_(job.plan().experiments.size()) {
  for (std::uint32_t id = 0; id < job.plan().experiments.size(); ++id) {
    const PlannedExperiment& planned = job.plan().experiments[id];
    if (planned.in_other_shard) continue;
    ++total_;
    if (planned.fits())
      experiments_of_.at(planned.step).push_back(id);
    else
      ++out_of_memory_;
  }
}

void LiveSummary::settled(std::uint32_t task, const Outcome& outcome) {
  const Plan& plan = job_.plan();
  if (outcome.is_failure() && outcome.status != Status::input) {
    failures_.push_back({task, outcome.status, shortened(outcome.bytes, kMaxReasonBytes)});
    if (failures_.size() > kMaxFailures) failures_.pop_front();
  }
  if (!plan.is_step(task)) return;
  const std::uint32_t step = task - plan.task_of_step(0);
  const std::size_t experiments = experiments_of_[step].size();
  if (!outcome.ok()) {
    (outcome.is_failure() ? failed_ : bounded_) += experiments;
    return;
  }
  const auto result = core::step::decode_step(outcome.bytes);
  (result.too_large ? too_large_ : ran_) += experiments;
  if (!result.too_large) pending_.insert(pending_.end(), experiments_of_[step].begin(), experiments_of_[step].end());
}

/// Returns settled experiments that are in no row yet together with the best so far, since only rows of one table are
/// ranked.
std::vector<std::uint32_t> LiveSummary::next_rows() {
  std::vector<std::uint32_t> ids = best_;
  for (; !pending_.empty() && ids.size() < kRowsPerBatch; pending_.pop_front()) ids.push_back(pending_.front());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void LiveSummary::catch_up(const OutcomeOf& outcome, steady_clock::duration limit) {
  const auto begin = steady_clock::now();
  while (!pending_.empty() && steady_clock::now() - begin < limit)
    add_rows(make_rows(job_.sweep(), job_.plan(), outcome, uncertainty_, next_rows()));
}

void LiveSummary::add_all_rows(const io::Results& rows) {
  pending_.clear();
  add_rows(rows);
}

void LiveSummary::add_rows(const io::Results& rows) {
  const io::Ranking ranking = io::rank_experiments(rows, {kMaxRanked});
  ranking_ = {{"by", ranking.by}, {"descending", ranking.descending}, {"rows", nlohmann::json::array()}};
  best_.clear();
  for (const io::Ranking::Row& row : ranking.rows) {
    best_.push_back(id_at(rows, row.row));
    nlohmann::json members{{"id", best_.back()},
                           {"layout", row.layout},
                           {"largest_loss", row.largest_loss},
                           {"largest_loss_share", row.largest_loss_share},
                           {"from_best", io::name_of(row.distinction)}};
    const auto add_column = [&](const std::string& name) {
      if (const io::Column* column = rows.experiments.find(name)) members[name] = column->number_at(row.row);
    };
    for (const char* name : kRankingColumns) add_column(name);
    add_column(ranking.by);
    ranking_["rows"].push_back(std::move(members));
  }
  add_points(rows);
}

void LiveSummary::add_points(const io::Results& rows) {
  const io::Column* throughput = rows.experiments.find("tokens_per_s_per_gpu");
  const io::Column* memory = rows.experiments.find("memory_peak_bytes");
  MANYWORLDS_CHECK(throughput && memory, "an answer of {} columns without throughput or memory",
                   rows.experiments.columns.size());
  std::vector<std::pair<Point, std::size_t>> points;  // with their rows
  for (Point& point : front_) points.emplace_back(std::move(point), rows.experiments.rows());
  for (std::size_t row = 0; row < rows.experiments.rows(); ++row) {
    const Point point{id_at(rows, row), throughput->number_at(row), memory->number_at(row), ""};
    if (std::isnan(point.throughput) || is_added_.at(point.id)) continue;
    is_added_[point.id] = true;
    ++ranked_;
    if (!io::is_known(*memory, row)) continue;
    cloud_.emplace(shuffle_key(point.id), point);
    if (cloud_.size() > kMaxCloudPoints) cloud_.erase(std::prev(cloud_.end()));
    points.emplace_back(point, row);
  }
  std::sort(points.begin(), points.end(), [](const auto& left, const auto& right) {
    const Point &a = left.first, &b = right.first;
    if (a.throughput != b.throughput) return a.throughput > b.throughput;
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

nlohmann::json LiveSummary::to_json() const {
  return {{"name", job_.sweep().name},
          {"experiments",
           {{"total", total_},
            {"ran", ran_},
            {"bounded", bounded_},
            {"out_of_memory", out_of_memory_},
            {"too_large", too_large_},
            {"failed", failed_},
            {"pending", total_ - ran_ - bounded_ - out_of_memory_ - too_large_ - failed_},
            {"excluded", job_.sweep().excluded.size()}}},
          {"ranking", ranking_json()},
          {"pareto", pareto_json()},
          {"failures", failures_json()}};
}

nlohmann::json LiveSummary::ranking_json() const {
  if (ranking_.is_null()) return nullptr;
  nlohmann::json members = ranking_;
  members["ranked"] = ranked_;
  return members;
}

/// One JSON array per column keeps the status short even for hundreds of points.
nlohmann::json LiveSummary::pareto_json() const {
  struct Columns {
    nlohmann::json id = nlohmann::json::array(), throughput = id, memory = id, layout = id;
    void add(const Point& point) {
      id.push_back(point.id), throughput.push_back(point.throughput), memory.push_back(point.memory);
      layout.push_back(point.layout);
    }
    nlohmann::json to_json() const {
      return {{"id", id}, {"tokens_per_s_per_gpu", throughput}, {"memory_peak_bytes", memory}};
    }
  };
  Columns front, cloud;
  // A long front is reduced to its ends and evenly spaced points between them.
  const std::size_t shown = std::min(front_.size(), kMaxFrontPoints);
  for (std::size_t i = 0; i < shown; ++i) front.add(front_[shown < 2 ? 0 : i * (front_.size() - 1) / (shown - 1)]);
  for (const auto& [place, point] : cloud_) cloud.add(point);
  nlohmann::json members{{"front", front.to_json()}, {"front_size", front_.size()}, {"cloud", cloud.to_json()}};
  members["front"]["layout"] = front.layout;
  return members;
}

nlohmann::json LiveSummary::failures_json() const {
  const Plan& plan = job_.plan();
  nlohmann::json members = nlohmann::json::array();
  for (const Failure& failure : failures_) {
    members.push_back({{"task", failure.task},
                       {"kind", plan.kind_of(failure.task)},
                       {"class", name_of(failure.status)},
                       {"experiment", plan.experiment_of(failure.task)},
                       {"reason", failure.reason}});
  }
  return members;
}

}  // namespace manyworlds::farm
