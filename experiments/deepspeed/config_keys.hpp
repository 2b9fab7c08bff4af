// What each key of DeepSpeed's configuration means here.
#pragma once

#include "experiments/jobs/known_keys.hpp"

namespace manyworlds::experiments::jobs::deepspeed {

const KnownKeys& known_keys();

}  // namespace manyworlds::experiments::jobs::deepspeed
