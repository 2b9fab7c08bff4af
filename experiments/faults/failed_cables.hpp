// What an answer says of the cables that have failed on the way.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/network/fabric/failing_cables.hpp"

namespace manyworlds::experiments {

struct FailedCable {
  std::string name;  // as in 'faults.fails': leaf0-spine1, or leaf0-spine1#0 of several
  core::Time at = 0, avoided_at = 0;
};

/// Returns the cables of `graph` that fail, in the order of time.
std::vector<FailedCable> failed_cables(const core::network::LinkFailures& failures, const core::network::Graph& graph);

/// Says which of them failed when before `end`, which after it without effect, and, if `lost` is not negative, how many
/// packets they lost and how many were sent again: "leaf0-spine1 at 2 ms, avoided from 52 ms; 12 packets lost, 14 sent
/// again". `what` ended then: "the step".
std::string failed_cables_text(const std::vector<FailedCable>& cables, core::Time end, const std::string& what,
                               std::int64_t lost, std::int64_t sent_again);

/// The same as a list of objects: cable, at_s, avoided_at_s and before_the_end.
nlohmann::ordered_json failed_cables_json(const std::vector<FailedCable>& cables, core::Time end);

}  // namespace manyworlds::experiments
