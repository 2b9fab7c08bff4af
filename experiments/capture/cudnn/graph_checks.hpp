// What must hold of a descriptor of the backend before it is final.
#pragma once

#include "experiments/capture/cudnn/descriptor.hpp"

namespace manyworlds::experiments::capture::cudnn {

/// Returns what is wrong with a descriptor that has all that its kind must have: extents of tensors that are none,
/// operations whose tensors do not agree, descriptors of another kind than is asked for, an engine that is not there.
Outcome check(const Descriptor& of);

}  // namespace manyworlds::experiments::capture::cudnn
