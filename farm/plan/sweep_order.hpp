// What a simulating process is told of a sweep: once what all of it has in common, then one task at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::farm {

struct SweepCommon {
  bool share = true;     // tasks share what they have in common
  std::string settings;  // of every experiment: experiments::freeze(Common)
};
std::string encode(const SweepCommon& common);
/// Throws InternalError on bytes that encode() did not make.
SweepCommon decode_common(const std::string& bytes);

struct SweepOrder {
  enum class Kind : std::uint8_t { collective, step } kind = Kind::step;
  std::string settings;    // of an experiment that needs the task: what is its own, experiments::freeze_own()
  core::sharing::Key key;  // of a collective
  std::uint32_t use = 0;   // of a collective: its number in World::uses()
  std::vector<core::sharing::Key> inputs;  // of a step: the collectives whose results it is given
};

std::string encode(const SweepOrder& order);
/// Throws InternalError on bytes that encode() did not make.
SweepOrder decode_order(const std::string& bytes);

}  // namespace manyworlds::farm
