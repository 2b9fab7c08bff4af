// Engines of cuDNN: a graph has one, which needs no workspace, as nothing is computed.
#pragma once

#include <optional>

#include "experiments/capture/cudnn/descriptor.hpp"

namespace manyworlds::experiments::capture::cudnn {

/// Returns what an attribute is that callers do not set but ask for: what heuristics found, counts of engines,
/// workspaces. Nothing of others.
std::optional<Value> answered(const Descriptor& of, int attribute);

/// Returns the operation graph of an execution plan that is final; null of another descriptor.
const Descriptor* graph_of_plan(const Descriptor& plan);

}  // namespace manyworlds::experiments::capture::cudnn
