// What each key of torchtitan's job file means here.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/given_keys.hpp"

namespace manyworlds::experiments::jobs::torchtitan {

const KnownNames& known_keys();

/// Returns the first key that no version since v0.2.0 (October 2025) has; empty if the file may be of one.
std::string key_before_v0_2(const std::vector<GivenKey>& keys);

/// Gives keys of earlier versions the names of v0.2.2, unless the file has those too.
std::vector<GivenKey> with_names_of_today(std::vector<GivenKey> keys);

}  // namespace manyworlds::experiments::jobs::torchtitan
