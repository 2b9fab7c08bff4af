// What a fabric is, seen as a whole: tiers of switches, rails, rates, oversubscription, and what is missing or unlike
// the rest.
#pragma once

#include <string>
#include <vector>

#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {

struct Tier {
  std::vector<std::uint32_t> switches;  // of the fabric
  std::int64_t cables_down = 0;         // to hosts or the tier below, all together
  std::int64_t cables_up = 0;
  double gbps_down = 0, gbps_up = 0;  // sums of their rates
  std::int64_t inside = 0;            // cables between two switches of the tier
  std::int64_t unlike = 0;            // switches with fewer cables up than usual
  std::int64_t usual_up = 0;          // cables up of most switches
};

/// A pair of tiers: cables that most pairs of switches have and some lack.
struct MissingCables {
  std::int64_t count = 0;
  std::string rule;                 // how they were counted
  std::vector<std::string> places;  // "leaf-1 to spine-2: 1 of 2"
};

struct Survey {
  std::int64_t complete_hosts = 0, nics = 0;
  std::vector<std::string> incomplete;  // "a05 (3 NICs)"
  std::vector<Tier> tiers;              // leaves first; a switch without a path to a host is in the last
  MissingCables missing;
  std::int64_t rails = 0;  // 0: NICs of a host share their leaves
  std::string rail_rule;
  std::vector<std::string> crossed;  // hosts whose NICs are on other rails than those of the others
  std::vector<std::string> rates;    // "542 NICs of 400 Gb/s"
};

Survey survey_of(const Fabric& fabric);

/// Returns "leaves", "spines", "cores" or "tier 4".
std::string tier_name(std::size_t tier);

/// Returns the survey as a table; lists of names are cut after the first `shown`.
std::string survey_text(const Fabric& fabric, const Survey& survey, std::size_t shown);

}  // namespace manyworlds::experiments::clusters
