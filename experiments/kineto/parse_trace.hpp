// Reads the JSON of a trace event by event, so that no more of it is in memory than what RankTrace keeps.
#pragma once

#include <istream>
#include <string>

#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::kineto {

/// Reads a trace; `name` is its name in messages. Throws core::InputError with the place for a text that is no JSON or
/// is torn, if it is no trace of a profiler, and if it has no operation of a device.
profiler::RankTrace parse_trace(std::istream& text, const std::string& name);

}  // namespace manyworlds::experiments::kineto
