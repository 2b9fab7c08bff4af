// What each key of torchtitan's job file means here.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/given_keys.hpp"

namespace manyworlds::experiments::jobs::torchtitan {

const KnownNames& known_keys();

/// Gives keys of earlier versions the names of v0.2.2, unless the file has those too.
std::vector<GivenKey> with_names_of_today(std::vector<GivenKey> keys);

}  // namespace manyworlds::experiments::jobs::torchtitan
