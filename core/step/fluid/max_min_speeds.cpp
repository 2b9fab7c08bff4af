#include "core/step/fluid/max_min_speeds.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace manyworlds::core::step {
namespace {

/// Returns the common speed at which a link is full: rounded down, but above 0 and at most full speed.
FluidShare filling_speed(FluidShare unused, FluidShare load) {
  const Int128 speed = Int128{std::max<FluidShare>(0, unused)} * kFullSpeed / load;
  return static_cast<FluidShare>(std::clamp<Int128>(speed, 1, kFullSpeed));
}

}  // namespace

void MaxMinSpeeds::add(std::uint32_t number, const Loads& loads) {
  if (number >= members_.size()) members_.resize(number + 1);
  MANYWORLDS_CHECK(members_[number].loads == nullptr, "collective {} is added twice", number);
  members_[number] = {&loads};
  for (const auto& [id, share, count] : loads) {
    Link& link = links_[id];
    link.load += share * count;
    link.users.push_back(number);
    if (is_short(link)) touched_.push_back(id);
  }
}

void MaxMinSpeeds::remove(std::uint32_t number) {
  for (const auto& [id, share, count] : *members_[number].loads) {
    Link& link = links_[id];
    if (is_short(link)) touched_.push_back(id);
    link.load -= share * count;
    const auto user = std::find(link.users.begin(), link.users.end(), number);
    *user = link.users.back();
    link.users.pop_back();
  }
  members_[number].loads = nullptr;
}

void MaxMinSpeeds::affect(std::uint32_t link) {
  if (std::exchange(links_[link].is_affected, true)) return;
  affected_links_.push_back(link);
}

/// Finds the links whose users may get another speed, and these users: what hangs together by links that are short of
/// time, or were before the change. Other links limit nobody, and so transmit no change.
void MaxMinSpeeds::find_affected() {
  affected_.clear();
  affected_links_.clear();
  for (const std::uint32_t link : touched_) affect(link);
  touched_.clear();
  for (std::size_t next = 0; next < affected_links_.size(); ++next)
    for (const std::uint32_t number : links_[affected_links_[next]].users) {
      if (std::exchange(members_[number].is_affected, true)) continue;
      affected_.push_back(number);
      for (const Load& load : *members_[number].loads)
        if (is_short(links_[load.link])) affect(load.link);
    }
  std::sort(affected_.begin(), affected_.end());
}

/// Progressive filling: the link that is filled at the lowest common speed of its users fixes their speeds.
void MaxMinSpeeds::fill() {
  using Level = std::pair<FluidShare, std::uint32_t>;  // the speed at which a link is full
  std::priority_queue<Level, std::vector<Level>, std::greater<>> levels;
  const auto level_of = [](const Link& link) { return filling_speed(kFullSpeed - link.fixed, link.open_load); };
  for (const std::uint32_t id : affected_links_) {
    Link& link = links_[id];
    link.is_affected = false;
    link.fixed = 0, link.open_load = link.load;
    if (is_short(link)) levels.emplace(level_of(link), id);
  }
  for (const std::uint32_t number : affected_) members_[number].is_fixed = false;
  std::vector<std::uint32_t> full;  // links that are full at the lowest level
  while (!levels.empty()) {
    const FluidShare level = levels.top().first;
    full.clear();
    while (!levels.empty() && levels.top().first == level) {
      const std::uint32_t id = levels.top().second;
      levels.pop();
      const Link& link = links_[id];
      if (link.open_load == 0) continue;  // all its users are limited elsewhere
      if (const FluidShare current = level_of(link); current > level)
        levels.emplace(current, id);
      else
        full.push_back(id);
    }
    if (!preference_.empty())
      std::stable_sort(full.begin(), full.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return preference_[a] < preference_[b]; });
    // All at once, so that rounding does not depend on the numbers of links.
    for (const std::uint32_t id : full)
      for (const std::uint32_t number : links_[id].users) fix(number, level, id);
  }
}

/// Fixes the speed of a collective unless it is fixed already.
void MaxMinSpeeds::fix(std::uint32_t number, FluidShare speed, std::uint32_t bottleneck) {
  Member& member = members_[number];
  if (std::exchange(member.is_fixed, true)) return;
  member.speed = speed;
  member.bottleneck = bottleneck;
  for (const Load& load : *member.loads) {
    Link& link = links_[load.link];
    if (!is_short(link)) continue;
    link.open_load -= load.share * load.count;
    link.fixed += static_cast<FluidShare>(Int128{load.share} * speed / kFullSpeed) * load.count;
  }
}

std::vector<std::uint32_t> MaxMinSpeeds::update() {
  if (touched_.empty()) return {};
  find_affected();
  std::vector<std::pair<std::uint32_t, FluidShare>> before;
  for (const std::uint32_t number : affected_) {
    Member& member = members_[number];
    before.emplace_back(number, member.speed);
    member.is_affected = false;
    member.speed = kFullSpeed;
  }
  fill();
  std::vector<std::uint32_t> changed;
  for (const auto& [number, speed] : before)
    if (members_[number].speed != speed) changed.push_back(number);
  return changed;
}

}  // namespace manyworlds::core::step
