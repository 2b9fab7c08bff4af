#include "experiments/nsys/event_records.hpp"

#include <algorithm>
#include <tuple>

namespace manyworlds::experiments::nsys {
namespace {

auto place_of(const EventRecord& one) {
  return std::tuple(one.process, one.context, one.event, one.correlation);
}

}  // namespace

EventRecords::EventRecords(const Database& database) {
  constexpr const char* kRecords = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
  if (!database.has(kRecords)) return;
  Rows rows = database.rows(kRecords, {{"globalPid", false},
                                       {"contextId", false},
                                       {"eventId"},
                                       {"correlationId"},
                                       {"eventSyncId", false},
                                       {"deviceId", false},
                                       {"streamId"}});
  while (rows.next()) {
    EventRecord one;
    one.process = rows.whole(0, 0) >> 24;
    one.context = rows.whole(1, 0);
    one.event = rows.whole(2, 0);
    one.correlation = rows.whole(3, 0);
    one.sync = rows.whole(4, -1);
    one.device = rows.whole(5, -1);
    one.stream = rows.whole(6, 0);
    records_.push_back(one);
  }
  std::sort(records_.begin(), records_.end(),
            [](const EventRecord& a, const EventRecord& b) { return place_of(a) < place_of(b); });
  for (std::uint32_t i = 0; i < records_.size(); ++i)
    if (records_[i].sync >= 0) by_sync_.push_back(i);
  std::sort(by_sync_.begin(), by_sync_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(records_[a].process, records_[a].sync, a) < std::tuple(records_[b].process, records_[b].sync, b);
  });
}

const EventRecord* EventRecords::find(std::int64_t process, std::int64_t context, std::int64_t event, std::int64_t sync,
                                      std::int64_t correlation) const {
  if (sync >= 0) {
    const auto known = std::lower_bound(
        by_sync_.begin(), by_sync_.end(), std::pair(process, sync),
        [&](std::uint32_t one, auto key) { return std::pair(records_[one].process, records_[one].sync) < key; });
    if (known != by_sync_.end() && records_[*known].process == process && records_[*known].sync == sync)
      return &records_[*known];
  }
  EventRecord wanted;
  wanted.process = process, wanted.context = context, wanted.event = event, wanted.correlation = correlation;
  auto behind = std::lower_bound(records_.begin(), records_.end(), wanted,
                                 [](const EventRecord& a, const EventRecord& b) { return place_of(a) < place_of(b); });
  if (behind == records_.begin()) return nullptr;
  const EventRecord& last = *--behind;
  return last.process == process && last.context == context && last.event == event ? &last : nullptr;
}

}  // namespace manyworlds::experiments::nsys
