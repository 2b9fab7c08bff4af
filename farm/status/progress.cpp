#include "farm/status/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "core/base/plural.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm {

namespace {
constexpr std::size_t kListedRanks = 16;
}

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
  for (std::size_t task = 0; task < costs.size(); ++task) counts_[kind_of_[task]].cost_left += costs[task];
}

void Progress::settled(std::uint32_t task, const Outcome& outcome, bool known) {
  Count& count = counts_[kind_of_.at(task)];
  ++count.done;
  count.failed += outcome.is_failure() ? 1 : 0;
  quarantined_ += outcome.status == Status::crash ? 1 : 0;
  count.cost_left -= costs_[task];
  if (outcome.status == Status::left_out) return;
  if (known) {
    ++known_;
  } else {
    ++computed_, ++count.computed;
    count.cost_computed += costs_[task];
    elapsed_us_ += outcome.elapsed_us;
    count.elapsed_us += outcome.elapsed_us;
  }
}

/// Returns the time that the tasks left take, if each kind goes on as it went: costs of different kinds are not alike.
/// Nothing before the first task of a kind that is left was computed.
std::optional<double> Progress::time_left_s(double elapsed_s) const {
  double left_us = 0;
  for (const Count& count : counts_) {
    if (count.done == count.total) continue;
    if (count.computed == 0 || elapsed_us_ <= 0) return std::nullopt;
    const double share = count.cost_computed > 0
                             ? std::max(0.0, count.cost_left) / count.cost_computed
                             : static_cast<double>(count.total - count.done) / static_cast<double>(count.computed);
    left_us += share * static_cast<double>(count.elapsed_us);
  }
  return left_us * elapsed_s / static_cast<double>(elapsed_us_);
}

namespace {

/// Returns one array per quantity, with one entry per worker heard so far: compact even for thousands of workers.
nlohmann::json columns(const std::vector<WorkerLoad>& loads, double elapsed_s) {
  nlohmann::json rank = nlohmann::json::array(), alive = rank, done = rank, busy = rank, held = rank, helped = rank,
                 used = rank;
  for (const WorkerLoad& load : loads) {
    rank.push_back(load.number);
    alive.push_back(load.alive);
    done.push_back(load.done);
    busy.push_back(elapsed_s > 0 ? std::round(1e3 * load.busy_s / elapsed_s) / 1e3 : 0);
    held.push_back(load.held);
    helped.push_back(load.help.given);
    used.push_back(load.help.used);
  }
  return {{"rank", rank}, {"alive", alive},   {"done", done}, {"busy", busy},
          {"held", held}, {"helped", helped}, {"used", used}};
}

}  // namespace

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
  nlohmann::json status{
      {"format", 2},
      {"state", state},
      {"total", all.total},
      {"done", all.done},
      {"failed", all.failed},
      {"quarantined", quarantined_},
      {"known_before", known_},
      {"kinds", kinds},
      {"elapsed_s", elapsed_s},
      {"simulated_s", static_cast<double>(elapsed_us_) * 1e-6},
      {"ranks", ranks_},
      {"ranks_lost", std::count_if(loads_.begin(), loads_.end(), [](const auto& l) { return !l.alive; })},
      {"load", columns(loads_, elapsed_s)},
      {"host", io::host_name()},
      {"pid", ::getpid()},
      {"updated", static_cast<std::int64_t>(std::time(nullptr))}};
  status["rate_per_s"] = elapsed_s > 0 ? static_cast<double>(computed_) / elapsed_s : 0.0;
  const std::optional<double> left = time_left_s(elapsed_s);
  status["time_left_s"] = left ? nlohmann::json(*left) : nullptr;
  status["sharing"] = nullptr;
  return status;
}

std::string duration_text(double seconds) {
  const auto whole_s = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e12)));
  if (whole_s < 60) return fmt::format("{}s", whole_s);
  if (whole_s < 3600) return fmt::format("{}m{:02}s", whole_s / 60, whole_s % 60);
  return fmt::format("{}h{:02}m", whole_s / 3600, whole_s / 60 % 60);
}

namespace {

/// Returns what a state of status.json means to whoever waits for the run.
std::string state_text(const std::string& state) {
  if (state == "draining") return "stopping (what runs is finished)";
  if (state == "drained") return "stopped";
  return state;
}

std::string counted_ranks(std::uint64_t ranks) {
  return fmt::format("{} {}", ranks, core::plural(ranks, "rank"));
}

}  // namespace

std::string progress_line(const nlohmann::json& status) {
  std::string line;
  for (const auto& kind : status.at("kinds"))
    line += fmt::format("{} {}/{}, ", kind.at("name").get<std::string>(), kind.at("done").get<std::uint64_t>(),
                        kind.at("total").get<std::uint64_t>());
  line += fmt::format("{:.1f}/s", status.at("rate_per_s").get<double>());
  if (const auto& left = status.at("time_left_s"); left.is_number())
    line += fmt::format(", {} left", duration_text(left.get<double>()));
  if (const auto failed = status.at("failed").get<std::uint64_t>(); failed > 0)
    line += fmt::format(", {} failed", failed);
  if (const auto lost = status.at("ranks_lost").get<std::uint64_t>(); lost > 0)
    line += fmt::format(", {} lost", counted_ranks(lost));
  if (const auto state = status.at("state").get<std::string>(); state != "running") line += ", " + state_text(state);
  return line;
}

namespace {

/// Returns a text of the status, which another build or a person may have written, escaped to one line.
std::string line_of(const nlohmann::json& text) {
  return core::line_text(text.get<std::string>());
}

/// Describes the load of each rank if they are few, otherwise the mean and the extremes.
std::string describe_load(const nlohmann::json& load) {
  const auto ranks = load.at("rank").size();
  if (ranks == 0) return {};
  std::uint64_t helped = 0, used = 0;  // an older build wrote neither
  for (const auto& count : load.value("helped", nlohmann::json::array())) helped += count.get<std::uint64_t>();
  for (const auto& count : load.value("used", nlohmann::json::array())) used += count.get<std::uint64_t>();
  const std::string help =
      helped == 0
          ? ""
          : fmt::format("help: idle ranks have simulated {} components of steps, {} of them of use\n", helped, used);
  std::string text = "load:";
  const auto describe_rank = [&](std::size_t i) {
    return fmt::format(" rank {} {:.0f} %{}", load.at("rank")[i].get<int>(), 100 * load.at("busy")[i].get<double>(),
                       load.at("alive")[i].get<bool>() ? "" : " (lost)");
  };
  if (ranks <= kListedRanks) {
    for (std::size_t i = 0; i < ranks; ++i) text += (i == 0 ? "" : ",") + describe_rank(i);
    return text + "\n" + help;
  }
  const auto busy = load.at("busy").get<std::vector<double>>();
  const auto [min_busy, max_busy] = std::minmax_element(busy.begin(), busy.end());
  const double mean = std::accumulate(busy.begin(), busy.end(), 0.0) / static_cast<double>(ranks);
  return text +
         fmt::format(" {:.0f} % in the mean,{} to{}\n", 100 * mean,
                     describe_rank(static_cast<std::size_t>(min_busy - busy.begin())),
                     describe_rank(static_cast<std::size_t>(max_busy - busy.begin()))) +
         help;
}

/// Describes the experiments by outcome and names the best one; "" for a job without experiments.
std::string describe_experiments(const nlohmann::json& status) {
  if (!status.contains("experiments")) return {};
  std::string text = "experiments:";
  for (const char* what : {"ran", "bounded", "out_of_memory", "too_large", "failed", "pending"})
    if (const auto count = status["experiments"].value(what, std::uint64_t{0}); count > 0)
      text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", count, what);
  text += "\n";
  const nlohmann::json ranking = status.value("ranking", nlohmann::json());
  if (ranking.is_null() || ranking.at("rows").empty()) return text;
  const nlohmann::json& best = ranking["rows"][0];
  const std::string layout = line_of(best.at("layout"));
  if (layout.starts_with("phase=")) return text;  // parts of phases, none of which is in another's place
  return text + fmt::format("best of {} so far: experiment {}{}{}, {:.4g} s a step\n",
                            ranking.at("ranked").get<std::uint64_t>(), best.at("id").get<std::uint32_t>(),
                            layout.empty() ? "" : ", ", layout, best.at("step_time_s").get<double>());
}

}  // namespace

std::string describe_status(const nlohmann::json& status) {
  std::string text =
      fmt::format("{} on {} (process {}), {}\n", state_text(line_of(status.at("state"))), line_of(status.at("host")),
                  status.at("pid").get<std::int64_t>(), counted_ranks(status.at("ranks").get<std::uint64_t>()));
  if (const auto reason = status.find("reason"); reason != status.end()) text += line_of(*reason) + "\n";
  text += core::line_text(progress_line(status)) +
          fmt::format("\n{} so far, {} of it known before\n", duration_text(status.at("elapsed_s").get<double>()),
                      status.at("known_before").get<std::uint64_t>()) +
          describe_load(status.at("load")) + describe_experiments(status);
  const std::string resume = status.at("resume").get<std::string>();
  if (const auto failed = status.at("failed").get<std::uint64_t>(); failed > 0)
    text += fmt::format(
        "{} failed, {} of them quarantined as they crash; complete.json has why, and `{} --retry-failed` "
        "tries them again\n",
        failed, status.at("quarantined").get<std::uint64_t>(), resume);
  const std::string state = status.at("state").get<std::string>();
  return state == "drained" || state == "interrupted" || state == "failed"
             ? text + fmt::format("`{}` resumes it\n", resume)
             : text;
}

}  // namespace manyworlds::farm
