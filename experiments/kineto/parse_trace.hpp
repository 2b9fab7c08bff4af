// Reads the JSON of a trace event by event, so that no more of it is in memory than what RankTrace keeps.
#pragma once

#include <istream>
#include <string>

#include "experiments/profiler_events/operator_inputs.hpp"
#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::kineto {

/// Reads a trace; `name` is its name in messages. Throws core::InputError with the place for a text that is no JSON or
/// is torn, if it is no trace of a profiler, if it has no operation of a device, and if `host`, which tells inputs of
/// operators (null: the trace does), is of another run.
profiler::RankTrace parse_trace(std::istream& text, const std::string& name,
                                const profiler::OperatorInputs* host = nullptr);

}  // namespace manyworlds::experiments::kineto
