// Execution traces of PyTorch's host (torch.profiler.ExecutionTraceObserver), which tell what the operators of a
// profiler's trace worked on.
#pragma once

#include <istream>
#include <string>

#include "experiments/profiler_events/operator_inputs.hpp"

namespace manyworlds::experiments::kineto {

/// Reads the operators of a trace of schema 1.1 or later, node by node; `name` is its name in messages. Throws
/// core::InputError for a text that is no JSON or no such trace, and for one without a node whose call is numbered
/// (`rf_id`), by which a profiler's trace is linked with it.
profiler::OperatorInputs parse_host_trace(std::istream& text, const std::string& name);

}  // namespace manyworlds::experiments::kineto
