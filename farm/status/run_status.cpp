#include "farm/status/run_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"
#include "farm/status/resume_line.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/file.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm {
namespace {

using core::InputError;
using experiments::import::JsonView;

constexpr std::int64_t kHeartbeatTimeout_s = 15;
constexpr std::int64_t kMaxId = std::numeric_limits<std::uint32_t>::max();
constexpr std::array<const char*, 4> kStates{"running", "draining", "drained", "complete"};

void check_counts(const JsonView& object, std::initializer_list<const char*> members) {
  for (const char* member : members) object.at(member).whole();
}

void check_texts(const JsonView& object, std::initializer_list<const char*> members) {
  for (const char* member : members) object.at(member).text();
}

void is_id(const JsonView& value) {
  value.whole(0, kMaxId);
}
void is_rank(const JsonView& value) {
  value.whole(0, std::numeric_limits<int>::max());
}
void is_count(const JsonView& value) {
  value.whole();
}
void is_share(const JsonView& value) {
  value.number(0);
}
void is_text(const JsonView& value) {
  value.text();
}
void is_boolean(const JsonView& value) {
  value.boolean();
}
/// A number, or null where it is unknown.
void is_number_or_null(const JsonView& value) {
  if (!value.is_null()) value.number();
}

/// The name of an array and the check of its elements.
struct Column {
  const char* name;
  void (*check)(const JsonView&);
};

/// Checks arrays that must have equal lengths.
void check_columns(const JsonView& object, std::initializer_list<Column> columns) {
  const std::size_t rows = object.at(columns.begin()->name).size();
  for (const auto& [name, check] : columns) {
    const JsonView column = object.at(name);
    if (column.size() != rows) throw InputError(fmt::format("'{}' differs in length from the other columns", name));
    column.for_each(check);
  }
}

void check_load(const JsonView& load) {
  check_columns(load,
                {{"rank", is_rank}, {"alive", is_boolean}, {"done", is_count}, {"busy", is_share}, {"held", is_count}});
  if (load.find("helped")) check_columns(load, {{"rank", is_rank}, {"helped", is_count}, {"used", is_count}});
}

void check_ranking(const JsonView& ranking) {
  ranking.at("by").text();
  ranking.at("descending").boolean();
  ranking.at("ranked").whole();
  ranking.at("rows").for_each([](const JsonView& row) {
    is_id(row.at("id"));
    check_texts(row, {"layout", "largest_loss", "from_best"});
    row.at("step_time_s").number();
    is_number_or_null(row.at("tokens_per_s_per_gpu"));  // a program may not say how many tokens its step has
    for (const char* member : {"largest_loss_share", "memory_peak_bytes", "step_time_low_s", "step_time_high_s"})
      if (const auto value = row.find(member)) is_number_or_null(*value);
  });
}

void check_pareto(const JsonView& pareto) {
  pareto.at("front_size").whole();
  for (const char* points : {"front", "cloud"})
    check_columns(
        pareto.at(points),
        {{"id", is_id}, {"tokens_per_s_per_gpu", is_number_or_null}, {"memory_peak_bytes", is_number_or_null}});
  check_columns(pareto.at("front"), {{"id", is_id}, {"layout", is_text}});
}

/// Checks the members that only a sweep writes.
void check_sweep(const JsonView& status) {
  if (const auto name = status.find("name")) name->text();
  if (const auto experiments = status.find("experiments"))
    check_counts(*experiments, {"total", "ran", "out_of_memory", "too_large", "failed", "pending", "excluded"});
  if (const auto ranking = status.find("ranking"); ranking && !ranking->is_null()) check_ranking(*ranking);
  if (const auto pareto = status.find("pareto")) check_pareto(*pareto);
  if (const auto failures = status.find("failures"))
    failures->for_each([](const JsonView& failure) {
      check_counts(failure, {"task", "experiment"});
      check_texts(failure, {"kind", "class", "reason"});
    });
}

void check_status(const JsonView& status) {
  status.at("format").whole(2, 2);
  const std::string& state = status.at("state").text();
  if (std::find(kStates.begin(), kStates.end(), state) == kStates.end()) throw InputError("'state' is unknown");
  check_counts(status,
               {"total", "done", "failed", "quarantined", "known_before", "ranks", "ranks_lost", "pid", "updated"});
  check_texts(status, {"host", "resume"});
  if (const auto store = status.find("store")) store->text();
  for (const char* member : {"rate_per_s", "elapsed_s", "simulated_s"}) status.at(member).number(0);
  for (const char* member : {"time_left_s", "sharing"})
    if (const JsonView value = status.at(member); !value.is_null()) value.number(0);
  status.at("kinds").for_each([](const JsonView& kind) {
    kind.at("name").text();
    check_counts(kind, {"total", "done", "failed"});
  });
  check_load(status.at("load"));
  check_sweep(status);
}

void detect_interruption(const std::filesystem::path& directory, nlohmann::json& status) {
  if (run_is_over(status) || io::is_in_use(directory)) return;
  // Some file systems keep locks local to one host: only silence shows the end of a run there.
  const bool same_host = status.at("host") == io::host_name();
  if (!same_host && std::time(nullptr) - status.at("updated").get<std::int64_t>() <= kHeartbeatTimeout_s) return;
  status["state"] = "interrupted";
  const auto completion = completion_of(directory);
  if (!completion || !completion->reason) return;
  if (completion->exit_code != kExitDrained) status["state"] = "failed";  // else it was stopped on request
  status["reason"] = *completion->reason;
}

Completion::Failure read_failure(const JsonView& failure) {
  Completion::Failure result{failure.at("class").text(), failure.at("reason").text(), std::nullopt};
  const auto experiments = failure.find("experiments");
  if (experiments)
    experiments->for_each([&](const JsonView& id) {
      const auto experiment = static_cast<std::uint32_t>(id.whole(0, kMaxId));
      if (!result.experiment) result.experiment = experiment;
    });
  return result;
}

Completion read_completion(const JsonView& complete) {
  complete.at("format").whole(1, 1);
  Completion result;
  result.exit_code = static_cast<int>(complete.at("exit").whole(0, 255));
  if (const auto reason = complete.find("reason")) result.reason = reason->text();
  if (const auto total = complete.find("total")) result.total = static_cast<std::uint64_t>(total->whole());
  if (const auto failed = complete.find("failed")) result.failed = static_cast<std::uint64_t>(failed->whole());
  if (const auto failures = complete.find("failures"))
    failures->for_each([&](const JsonView& failure) { result.failures.push_back(read_failure(failure)); });
  return result;
}

}  // namespace

nlohmann::json parse_status(std::string_view text, const std::string& file) {
  try {
    nlohmann::json status = experiments::import::parse_json(text, "");
    check_status(JsonView(status, "status"));
    return status;
  } catch (const InputError& error) {
    throw InputError(fmt::format("not a status this program wrote: {}", error.what()), file);
  }
}

std::optional<nlohmann::json> read_run_status(const std::filesystem::path& run_directory) {
  const auto text = io::read_status(run_directory);
  if (!text) return std::nullopt;
  nlohmann::json status = parse_status(*text, (run_directory / "status.json").string());
  detect_interruption(run_directory, status);
  // A command in the file must not be trusted for pasting, and the run may have been started in another directory.
  status["resume"] = resume_line(run_directory, status.value("store", ""));
  return status;
}

bool run_is_over(const nlohmann::json& status) {
  const auto& state = status.at("state");
  return state != "running" && state != "draining";
}

Completion parse_completion(std::string_view text, const std::string& file) {
  try {
    return read_completion(JsonView(experiments::import::parse_json(text, ""), "complete"));
  } catch (const InputError& error) {
    throw InputError(fmt::format("not what this program writes when a run is over: {}", error.what()), file);
  }
}

std::optional<Completion> completion_of(const std::filesystem::path& run_directory) {
  const auto text = io::read_complete(run_directory);
  if (!text) return std::nullopt;
  return parse_completion(*text, (run_directory / "complete.json").string());
}

}  // namespace manyworlds::farm
