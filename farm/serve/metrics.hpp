// Where a run stands as Prometheus reads it: its text exposition format, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "farm/serve/site.hpp"

namespace manyworlds::farm::serve {

/// Of a status as look_at_run() has it; what a status does not say has no sample.
std::string run_metrics(const nlohmann::json& status);
std::string traffic_metrics(const Traffic& traffic);

}  // namespace manyworlds::farm::serve
