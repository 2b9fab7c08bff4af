// The messages from which a simulating process knows a sweep: once the settings that all experiments share, then one
// task specification at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/sharing/key.hpp"
#include "core/step/layout/ids.hpp"

namespace manyworlds::farm {

struct SweepSharedSettings {
  bool share = true;     // tasks share their common sub-simulations
  std::string settings;  // of every experiment: experiments::serialize(Common)
};
std::string encode(const SweepSharedSettings& common);
/// Throws InternalError for bytes that encode() did not make.
SweepSharedSettings decode_common(const std::string& bytes);

struct SweepTaskSpec {
  enum class Kind : std::uint8_t { collective, step, bound } kind = Kind::step;
  std::string settings;    // own settings of one experiment that needs the task: experiments::serialize_own_settings()
  core::sharing::Key key;  // of a collective
  core::collective::Shape shape;           // of a collective
  core::step::GroupId group;               // of a collective: the group that runs it
  std::vector<core::sharing::Key> inputs;  // of a step: the keys of the collectives whose results are its inputs
};

std::string encode(const SweepTaskSpec& spec);
/// Throws InternalError for bytes that encode() did not make.
SweepTaskSpec decode_task_spec(const std::string& bytes);

}  // namespace manyworlds::farm
