// The handle of cuDNN, and how its calls end.
#pragma once

#include <string>

#include "experiments/capture/cudnn/operation_graph.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture::cudnn {

/// What a cudnnHandle_t points to.
struct Handle {
  void* stream = nullptr;
};

/// How a call ends that is not recorded if it ends well: the reason is that of cudnnGetLastErrorString(), and is
/// written to the record with the call's name.
Status ended(const char* call, const Outcome& outcome);

/// Adds the handle's stream and writes the line. The mutex is held.
Status recorded_on(Line line, void* handle);

}  // namespace manyworlds::experiments::capture::cudnn
