// Two streams in order; what is needed first is called back first, one layer ahead.
#include "core/workload/build/host_traffic.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::core::workload {

HostTraffic::HostTraffic(const StageWork& work, const compute::Gpu& gpu, const Schedule& order, Issuer& issuer)
    : work_(work), bits_per_second_(round_half_up(gpu.host_gb_per_s * 8e9)), issuer_(issuer) {
  for (const std::vector<Part>& parts : work.chunks)
    sends_.push_back(std::any_of(parts.begin(), parts.end(), [&](Part part) { return work.of(part).away_bytes > 0; }));
  if (std::find(sends_.begin(), sends_.end(), true) == sends_.end()) return;
  for (const Slot& slot : order) {
    if (!slot.begins_backward() || !splits(slot)) continue;
    const std::size_t parts = work.chunks[static_cast<std::size_t>(slot.chunk)].size();
    for (std::size_t place = 0; place < parts; ++place)
      if (const Key key = key_of(slot, place); lasts(key) > 0) needed_.push_back(key);
  }
}

HostTraffic::Key HostTraffic::key_of(const Slot& slot, std::size_t place) const {
  const std::size_t parts = work_.chunks[static_cast<std::size_t>(slot.chunk)].size();
  return {slot.micro_batch, slot.chunk, slot.forward() ? place : parts - 1 - place};
}

Time HostTraffic::lasts(const Key& key) const {
  const auto chunk = static_cast<std::size_t>(std::get<1>(key)), place = std::get<2>(key);
  const std::int64_t bytes = work_.of(work_.chunks[chunk][place]).away_bytes;
  return bytes == 0 ? 0 : serialization_ps(bytes, bits_per_second_);
}

void HostTraffic::before_part(const Slot& slot, std::size_t place) {
  if (!splits(slot)) return;
  const Key key = key_of(slot, place);
  if (lasts(key) == 0) return;
  if (slot.forward()) {
    if (leaving_.size() > 1) issuer_.wait_for(leaving_.front());
    return;
  }
  if (called_ == used_) call_back();
  MANYWORLDS_CHECK(needed_.at(used_) == key, "micro-batch {} is not what is needed next", slot.micro_batch);
  if (const auto returned = returned_.find(key); returned != returned_.end()) issuer_.wait_for(returned->second);
  ++used_;
  call_back();
}

void HostTraffic::after_part(const Slot& slot, std::size_t place) {
  if (!slot.forward() || !splits(slot)) return;
  const Key key = key_of(slot, place);
  if (lasts(key) == 0) return;
  if (called_ == used_ && used_ < needed_.size() && needed_[called_] == key) {
    ++called_;  // nothing is needed before it: it stays
    return;
  }
  const std::uint32_t op = issuer_.copy(Stream::offload, lasts(key), "offload", issuer_.last_kernel());
  sent_[key] = op;
  leaving_.push_back(op);
  if (leaving_.size() > 2) leaving_.erase(leaving_.begin());
  call_back();
}

/// The next that is needed, if it has left and no other is waiting to be used.
void HostTraffic::call_back() {
  if (called_ > used_ || called_ == needed_.size()) return;
  const Key& key = needed_[called_];
  const auto sent = sent_.find(key);
  if (sent == sent_.end()) return;
  Issuer::Waits waits = issuer_.last_kernel();
  waits.push_back(sent->second);
  returned_[key] = issuer_.copy(Stream::reload, lasts(key), "reload", waits);
  ++called_;
}

}  // namespace manyworlds::core::workload
