#include "farm/serve/metrics.hpp"

#include <fmt/format.h>

namespace manyworlds::farm::serve {
namespace {

using nlohmann::json;

constexpr std::size_t kListedRanks = 1024;

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"')
      text += std::string("\\") + c;
    else if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

/// Writes the header and the samples of one metric.
class Metric {
 public:
  Metric(std::string& text, const char* name, const char* type, const char* help) : text_(text), name_(name) {
    text_ += fmt::format("# HELP manyworlds_{} {}\n# TYPE manyworlds_{} {}\n", name, help, name, type);
  }
  Metric& sample(double value) { return line("", value); }
  Metric& sample(const char* label, const std::string& label_value, double value) {
    return line(fmt::format("{{{}=\"{}\"}}", label, escaped(label_value)), value);
  }

 private:
  Metric& line(const std::string& labels, double value) {
    text_ += fmt::format("manyworlds_{}{} {}\n", name_, labels, value);
    return *this;
  }
  std::string& text_;
  const char* name_;
};

/// A metric and the member of the status that holds its value.
struct Gauge {
  const char *name, *member, *help;
};

void add_tasks(std::string& text, const json& kinds) {
  for (const Gauge& gauge : {Gauge{"tasks", "total", "Tasks of the run."},
                             Gauge{"tasks_done", "done", "Tasks that are settled, failed ones included."},
                             Gauge{"tasks_failed", "failed", "Tasks that failed."}}) {
    Metric metric(text, gauge.name, "gauge", gauge.help);
    for (const json& kind : kinds) metric.sample("kind", kind.at("name").get<std::string>(), kind.at(gauge.member));
  }
}

void add_run_gauges(std::string& text, const json& status) {
  for (const Gauge& gauge :
       {Gauge{"tasks_quarantined", "quarantined", "Tasks given up as their simulator crashes."},
        Gauge{"tasks_known_before", "known_before", "Settled tasks whose results came from the journal or the store."},
        Gauge{"tasks_per_second", "rate_per_s", "Tasks computed per second since the last start of the run."},
        Gauge{"time_left_seconds", "time_left_s", "Estimated time until the run is complete."},
        Gauge{"sharing_ratio", "sharing",
              "CPU time of all experiments one by one over that of the run, estimated at its end."},
        Gauge{"elapsed_seconds", "elapsed_s", "Time since the last start of the run."},
        Gauge{"simulated_seconds", "simulated_s", "Time spent in simulations, summed over workers."},
        Gauge{"ranks", "ranks", "Ranks of the run."},
        Gauge{"ranks_lost", "ranks_lost", "Ranks that have fallen silent."},
        Gauge{"updated_timestamp_seconds", "updated", "Time of the last status update, since 1970."}})
    if (const auto found = status.find(gauge.member); found != status.end() && found->is_number())
      Metric(text, gauge.name, "gauge", gauge.help).sample(found->get<double>());
}

void add_experiments(std::string& text, const json& status) {
  if (const auto found = status.find("experiments"); found != status.end()) {
    Metric metric(text, "experiments", "gauge", "Experiments by what became of them.");
    for (const char* what : {"ran", "bounded", "out_of_memory", "too_large", "failed", "pending"})
      metric.sample("status", what, found->value(what, 0));
  }
  const auto ranking = status.find("ranking");
  if (ranking == status.end() || !ranking->is_object() || ranking->at("rows").empty()) return;
  const json& best = ranking->at("rows").at(0);
  Metric(text, "best_step_seconds", "gauge", "Step time of the best experiment so far.").sample(best.at("step_time_s"));
  if (const json& throughput = best.at("tokens_per_s_per_gpu"); throughput.is_number())
    Metric(text, "best_tokens_per_second_per_gpu", "gauge", "Throughput of the best experiment so far.")
        .sample(throughput);
}

void add_load(std::string& text, const json& load) {
  const std::size_t ranks = load.at("rank").size();
  if (ranks == 0 || ranks > kListedRanks) return;
  for (const Gauge& gauge : {Gauge{"rank_busy_ratio", "busy", "Share of the time so far that the rank simulated."},
                             Gauge{"rank_tasks_done", "done", "Tasks the rank has run."},
                             Gauge{"rank_alive", "alive", "Whether the rank has reported recently."}}) {
    Metric metric(text, gauge.name, "gauge", gauge.help);
    for (std::size_t i = 0; i < ranks; ++i) {
      const json& value = load.at(gauge.member).at(i);
      metric.sample("rank", std::to_string(load["rank"][i].get<std::int64_t>()),
                    value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>());
    }
  }
}

}  // namespace

std::string run_metrics(const json& status) {
  std::string text;
  const std::string current = status.at("state").get<std::string>();
  Metric state(text, "state", "gauge", "1 for the state the run is in, 0 for the others.");
  for (const char* one : {"starting", "running", "draining", "drained", "complete", "interrupted", "failed"})
    state.sample("state", one, current == one ? 1 : 0);
  if (const auto kinds = status.find("kinds"); kinds != status.end()) add_tasks(text, *kinds);
  add_run_gauges(text, status);
  add_experiments(text, status);
  if (const auto load = status.find("load"); load != status.end()) add_load(text, *load);
  return text;
}

std::string server_metrics(const ServerCounters& counters) {
  std::string text;
  Metric(text, "serve_connections", "gauge", "Connections to this server.")
      .sample(static_cast<double>(counters.connections));
  Metric(text, "serve_accepted_total", "counter", "Connections it took.")
      .sample(static_cast<double>(counters.accepted));
  Metric(text, "serve_turned_away_total", "counter", "Connections rejected because the server was full.")
      .sample(static_cast<double>(counters.rejected));
  Metric(text, "serve_dropped_total", "counter", "Connections that were too slow.")
      .sample(static_cast<double>(counters.dropped));
  Metric(text, "serve_requests_total", "counter", "Requests it answered.")
      .sample(static_cast<double>(counters.requests));
  return text;
}

}  // namespace manyworlds::farm::serve
