// What becomes of something that a job's file says.
#pragma once

#include <cstdint>

namespace manyworlds::experiments::jobs {

enum class Fate : std::uint8_t {
  mapped,      // settings follow from it
  irrelevant,  // it changes neither time nor memory of a step
  noted,       // it may change them, and is not modelled: the answer says so
  refused,     // it changes them, and is not modelled
};

}  // namespace manyworlds::experiments::jobs
