// What each key of DeepSpeed's configuration means here.
#pragma once

#include "experiments/jobs/known_names.hpp"

namespace manyworlds::experiments::jobs::deepspeed {

const KnownNames& known_keys();

}  // namespace manyworlds::experiments::jobs::deepspeed
