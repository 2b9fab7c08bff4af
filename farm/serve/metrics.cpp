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

/// The samples of one metric, under what it is.
class Metric {
 public:
  Metric(std::string& to, const char* name, const char* type, const char* help) : to_(to), name_(name) {
    to_ += fmt::format("# HELP manyworlds_{} {}\n# TYPE manyworlds_{} {}\n", name, help, name, type);
  }
  Metric& sample(double value) { return line("", value); }
  Metric& sample(const char* label, const std::string& of, double value) {
    return line(fmt::format("{{{}=\"{}\"}}", label, escaped(of)), value);
  }

 private:
  Metric& line(const std::string& labels, double value) {
    to_ += fmt::format("manyworlds_{}{} {}\n", name_, labels, value);
    return *this;
  }
  std::string& to_;
  const char* name_;
};

/// A metric and the member of the status that it tells.
struct Part {
  const char *name, *member, *help;
};

void add_tasks(std::string& to, const json& kinds) {
  for (const Part& part : {Part{"tasks", "total", "Tasks of the run."},
                           Part{"tasks_done", "done", "Tasks that are settled, failed ones included."},
                           Part{"tasks_failed", "failed", "Tasks that failed."}}) {
    Metric metric(to, part.name, "gauge", part.help);
    for (const json& kind : kinds) metric.sample("kind", kind.at("name").get<std::string>(), kind.at(part.member));
  }
}

void add_figures(std::string& to, const json& status) {
  for (const Part& part :
       {Part{"tasks_quarantined", "quarantined", "Tasks given up as their simulator crashes."},
        Part{"tasks_known_before", "known_before", "Settled tasks that the journal or the store knew."},
        Part{"tasks_per_second", "rate_per_s", "Tasks computed per second in this life of the run."},
        Part{"time_left_seconds", "time_left_s", "Estimated time until the run is complete."},
        Part{"sharing_ratio", "sharing", "Link-hops of all worlds over those simulated."},
        Part{"elapsed_seconds", "elapsed_s", "Time since this life of the run began."},
        Part{"simulated_seconds", "simulated_s", "Time spent in simulations, summed over workers."},
        Part{"ranks", "ranks", "Ranks of the run."}, Part{"ranks_lost", "ranks_lost", "Ranks that have fallen silent."},
        Part{"updated_timestamp_seconds", "updated", "When the run last said where it stands, since 1970."}})
    if (const auto found = status.find(part.member); found != status.end() && found->is_number())
      Metric(to, part.name, "gauge", part.help).sample(found->get<double>());
}

void add_experiments(std::string& to, const json& status) {
  if (const auto found = status.find("experiments"); found != status.end()) {
    Metric metric(to, "experiments", "gauge", "Experiments by what became of them.");
    for (const char* what : {"ran", "out_of_memory", "too_large", "failed", "pending"})
      metric.sample("status", what, found->at(what));
  }
  const auto ranking = status.find("ranking");
  if (ranking == status.end() || !ranking->is_object() || ranking->at("rows").empty()) return;
  const json& best = ranking->at("rows").at(0);
  Metric(to, "best_step_seconds", "gauge", "Step time of the best experiment so far.").sample(best.at("step_time_s"));
  Metric(to, "best_tokens_per_second_per_gpu", "gauge", "Throughput of the best experiment so far.")
      .sample(best.at("tokens_per_s_per_gpu"));
}

void add_load(std::string& to, const json& load) {
  const std::size_t ranks = load.at("rank").size();
  if (ranks == 0 || ranks > kListedRanks) return;
  for (const Part& part : {Part{"rank_busy_ratio", "busy", "Share of the time so far that the rank simulated."},
                           Part{"rank_tasks_done", "done", "Tasks the rank has run."},
                           Part{"rank_alive", "alive", "Whether the rank has spoken lately."}}) {
    Metric metric(to, part.name, "gauge", part.help);
    for (std::size_t i = 0; i < ranks; ++i) {
      const json& value = load.at(part.member).at(i);
      metric.sample("rank", std::to_string(load["rank"][i].get<std::int64_t>()),
                    value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>());
    }
  }
}

}  // namespace

std::string run_metrics(const json& status) {
  std::string text;
  const std::string is = status.at("state").get<std::string>();
  Metric state(text, "state", "gauge", "1 for the state the run is in, 0 for the others.");
  for (const char* one : {"starting", "running", "draining", "drained", "complete", "interrupted", "failed"})
    state.sample("state", one, is == one ? 1 : 0);
  if (const auto kinds = status.find("kinds"); kinds != status.end()) add_tasks(text, *kinds);
  add_figures(text, status);
  add_experiments(text, status);
  if (const auto load = status.find("load"); load != status.end()) add_load(text, *load);
  return text;
}

std::string traffic_metrics(const Traffic& traffic) {
  std::string text;
  Metric(text, "serve_connections", "gauge", "Connections to this server.")
      .sample(static_cast<double>(traffic.connections));
  Metric(text, "serve_accepted_total", "counter", "Connections it took.").sample(static_cast<double>(traffic.accepted));
  Metric(text, "serve_turned_away_total", "counter", "Connections beyond what it takes at a time.")
      .sample(static_cast<double>(traffic.turned_away));
  Metric(text, "serve_dropped_total", "counter", "Connections that were too slow.")
      .sample(static_cast<double>(traffic.dropped));
  Metric(text, "serve_requests_total", "counter", "Requests it answered.")
      .sample(static_cast<double>(traffic.requests));
  return text;
}

}  // namespace manyworlds::farm::serve
