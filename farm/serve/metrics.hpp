// The status of a run in the Prometheus text exposition format, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "farm/serve/http_handler.hpp"

namespace manyworlds::farm::serve {

/// Formats a status as read_run_status() returns it; members that are absent have no sample.
std::string run_metrics(const nlohmann::json& status);
std::string server_metrics(const ServerCounters& counters);

}  // namespace manyworlds::farm::serve
