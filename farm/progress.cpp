#include "farm/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/error.hpp"
#include "io/file.hpp"

namespace manyworlds::farm {

Progress::Progress(const std::vector<std::string>& kinds, const std::vector<double>& costs, int ranks)
    : costs_(costs), ranks_(ranks) {
  MANYWORLDS_CHECK(kinds.size() == costs.size(), "{} kinds of {} tasks", kinds.size(), costs.size());
  std::map<std::string, std::uint32_t> seen;
  for (const auto& kind : kinds) {
    const auto [place, is_new] = seen.emplace(kind, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(kind), counts_.emplace_back();
    kind_of_.push_back(place->second);
    ++counts_[place->second].total;
  }
  for (const double cost : costs) cost_left_ += cost;
}

void Progress::settled(std::uint32_t task, const Outcome& outcome, bool known) {
  Count& count = counts_[kind_of_.at(task)];
  ++count.done;
  count.failed += outcome.ok() ? 0 : 1;
  cost_left_ -= costs_[task];
  if (known) {
    ++known_;
  } else {
    ++computed_;
    cost_computed_ += costs_[task];
    elapsed_us_ += outcome.elapsed_us;
  }
}

nlohmann::json Progress::status(const std::string& state, double elapsed_s) const {
  Count all;
  nlohmann::json kinds = nlohmann::json::array();
  for (std::size_t kind = 0; kind < names_.size(); ++kind) {
    const Count& count = counts_[kind];
    kinds.push_back({{"name", names_[kind]}, {"total", count.total}, {"done", count.done}, {"failed", count.failed}});
    all.total += count.total;
    all.done += count.done;
    all.failed += count.failed;
  }
  nlohmann::json status{{"format", 1},
                        {"state", state},
                        {"total", all.total},
                        {"done", all.done},
                        {"failed", all.failed},
                        {"known_before", known_},
                        {"kinds", kinds},
                        {"elapsed_s", elapsed_s},
                        {"simulated_s", static_cast<double>(elapsed_us_) * 1e-6},
                        {"ranks", ranks_},
                        {"ranks_lost", ranks_lost_},
                        {"host", io::host_name()},
                        {"pid", ::getpid()},
                        {"updated", static_cast<std::int64_t>(std::time(nullptr))}};
  status["rate_per_s"] = elapsed_s > 0 ? static_cast<double>(computed_) / elapsed_s : 0.0;
  status["time_left_s"] = nullptr;
  if (all.done == all.total) {
    status["time_left_s"] = 0.0;
  } else if (computed_ > 0 && elapsed_s > 0) {
    const double by_cost = cost_computed_ > 0 ? std::max(0.0, cost_left_) * elapsed_s / cost_computed_ : 0;
    const double by_count = static_cast<double>(all.total - all.done) * elapsed_s / static_cast<double>(computed_);
    status["time_left_s"] = cost_computed_ > 0 ? by_cost : by_count;
  }
  status["sharing"] = sharing_ > 0 ? nlohmann::json(sharing_) : nlohmann::json(nullptr);
  return status;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e12)));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string progress_line(const nlohmann::json& status) {
  std::string line;
  for (const auto& kind : status.at("kinds"))
    line += fmt::format("{} {}/{}, ", kind.at("name").get<std::string>(), kind.at("done").get<std::uint64_t>(),
                        kind.at("total").get<std::uint64_t>());
  line += fmt::format("{:.1f}/s", status.at("rate_per_s").get<double>());
  if (const auto& left = status.at("time_left_s"); left.is_number())
    line += fmt::format(", {} left", duration_text(left.get<double>()));
  if (const auto& sharing = status.at("sharing"); sharing.is_number())
    line += fmt::format(", sharing {:.1f}x", sharing.get<double>());
  if (const auto failed = status.at("failed").get<std::uint64_t>(); failed > 0)
    line += fmt::format(", {} failed", failed);
  if (const auto lost = status.at("ranks_lost").get<std::uint64_t>(); lost > 0)
    line += fmt::format(", {} ranks lost", lost);
  if (const auto state = status.at("state").get<std::string>(); state != "running") line += ", " + state;
  return line;
}

std::string describe_status(const nlohmann::json& status) {
  std::string text = fmt::format("{} on {} (process {}), {} ranks\n", status.at("state").get<std::string>(),
                                 status.at("host").get<std::string>(), status.at("pid").get<std::int64_t>(),
                                 status.at("ranks").get<std::int64_t>());
  return text + progress_line(status) +
         fmt::format("\n{} so far, {} of it known before\n", duration_text(status.at("elapsed_s").get<double>()),
                     status.at("known_before").get<std::uint64_t>());
}

}  // namespace manyworlds::farm
