#include "core/workload/schedule/eager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace manyworlds::core::workload {
namespace {

/// A pass by what it makes: activations of a section, or gradients of what it was given.
struct Made {
  std::int32_t micro_batch;
  std::int64_t section;
  bool forward;
  auto operator<=>(const Made&) const = default;
};

/// What a pass needs, if anything; gradients of weights need those of the input.
std::optional<Made> needed_by(const Sections& sections, std::int64_t rank, const Slot& slot) {
  const std::int64_t section = sections.of(rank, slot.chunk);
  if (slot.forward()) return section == 0 ? std::nullopt : std::optional(Made{slot.micro_batch, section - 1, true});
  if (slot.kind == PassKind::weight_gradient) return Made{slot.micro_batch, section, false};
  if (section + 1 == sections.count()) return Made{slot.micro_batch, section, true};
  return Made{slot.micro_batch, section + 1, false};
}

class Eager {
 public:
  Eager(const Sections& sections, const std::vector<Schedule>& orders,
        const std::function<Time(std::int64_t, const Slot&)>& lasts, Time transfer_ps)
      : sections_(sections), orders_(orders), lasts_(lasts), transfer_ps_(transfer_ps) {
    run_.done.resize(orders.size(), 0);
  }

  EagerRun play() {
    std::vector<Time> began(orders_.size(), kNever), ends(orders_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < orders_.size(); ++rank)
        while (go_on(rank, began[rank], ends[rank])) moved = true;
    }
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      run_.step_ps = std::max(run_.step_ps, ends[rank]);
      if (began[rank] != kNever) run_.longest_ps = std::max(run_.longest_ps, ends[rank] - began[rank]);
    }
    return std::move(run_);
  }

 private:
  /// Runs the rank's next pass, and the one that runs with it, if all that they need is made.
  bool go_on(std::size_t rank, Time& began, Time& now) {
    const Schedule& order = orders_[rank];
    std::size_t& next = run_.done[rank];
    if (next == order.size()) return false;
    const std::size_t last = order[next].beside_next && next + 1 < order.size() ? next + 1 : next;
    Time begin = now, length = 0;
    for (std::size_t i = next; i <= last; ++i) {
      const auto ready = ready_at(static_cast<std::int64_t>(rank), order[i]);
      if (!ready) return false;
      begin = std::max(begin, *ready);
      length += lasts_(static_cast<std::int64_t>(rank), order[i]);
    }
    began = std::min(began, begin);
    now = begin + length;
    for (; next <= last; ++next)
      if (order[next].kind != PassKind::weight_gradient)
        made_[{order[next].micro_batch, sections_.of(static_cast<std::int64_t>(rank), order[next].chunk),
               order[next].forward()}] = {now, rank};
    return true;
  }

  std::optional<Time> ready_at(std::int64_t rank, const Slot& slot) const {
    const auto needed = needed_by(sections_, rank, slot);
    if (!needed) return 0;
    const auto found = made_.find(*needed);
    if (found == made_.end()) return std::nullopt;
    const auto& [at, where] = found->second;
    return at + (static_cast<std::int64_t>(where) == rank ? 0 : transfer_ps_);
  }

  const Sections& sections_;
  const std::vector<Schedule>& orders_;
  const std::function<Time(std::int64_t, const Slot&)>& lasts_;
  const Time transfer_ps_;
  EagerRun run_;
  std::map<Made, std::pair<Time, std::size_t>> made_;  // when, and on which rank
};

}  // namespace

EagerRun run_eagerly(const Sections& sections, const std::vector<Schedule>& orders,
                     const std::function<Time(std::int64_t rank, const Slot&)>& lasts, Time transfer_ps) {
  return Eager(sections, orders, lasts, transfer_ps).play();
}

std::string deadlock_of(const Sections& sections, const std::vector<Schedule>& orders) {
  const EagerRun run = run_eagerly(
      sections, orders, [](std::int64_t, const Slot&) { return Time{1}; }, 0);
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (run.done[rank] == orders[rank].size()) continue;
    const Slot& stands = orders[rank][run.done[rank]];
    const Slot& partner = stands.beside_next ? orders[rank][run.done[rank] + 1] : stands;
    for (const Slot* slot : {&stands, &partner}) {
      const auto needed = needed_by(sections, static_cast<std::int64_t>(rank), *slot);
      if (!needed) continue;
      for (std::size_t other = 0; other < orders.size(); ++other)
        for (std::size_t i = run.done[other]; i < orders[other].size(); ++i) {
          const Slot& later = orders[other][i];
          const bool makes = later.kind != PassKind::weight_gradient && later.micro_batch == needed->micro_batch &&
                             later.forward() == needed->forward &&
                             sections.of(static_cast<std::int64_t>(other), later.chunk) == needed->section;
          if (!makes) continue;
          const std::string behind =
              i == run.done[other] ? ""
                                   : fmt::format(", which stands behind {}", name_of(orders[other][run.done[other]]));
          return fmt::format("{} on rank {} waits for {} on rank {}{}", name_of(*slot), rank, name_of(later), other,
                             behind);
        }
    }
  }
  return "";
}

std::string name_of(const Slot& slot) {
  constexpr const char* kNames[] = {"forward", "backward", "input gradients", "weight gradients"};
  return fmt::format("{} of micro-batch {}, chunk {}", kNames[static_cast<std::size_t>(slot.kind)], slot.micro_batch,
                     slot.chunk);
}

}  // namespace manyworlds::core::workload
