// Offloads and reloads on two streams, each in order; reloads follow the order of use, one layer ahead.
#include "core/workload/build/host_traffic.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::core::workload {

HostTraffic::HostTraffic(const StageWork& work, const compute::Gpu& gpu, const PassOrder& order,
                         ProgramBuilder& builder)
    : work_(work), bits_per_second_(round_half_up(gpu.host_gb_per_s * 8e9)), builder_(builder) {
  for (const std::vector<ModelPart>& parts : work.chunks)
    offloads_.push_back(
        std::any_of(parts.begin(), parts.end(), [&](ModelPart part) { return work.of(part).offloaded_bytes > 0; }));
  if (std::find(offloads_.begin(), offloads_.end(), true) == offloads_.end()) return;
  for (const PipelinePass& pass : order) {
    if (!pass.begins_backward() || !splits(pass)) continue;
    const std::size_t parts = work.chunks[static_cast<std::size_t>(pass.chunk)].size();
    for (std::size_t part_index = 0; part_index < parts; ++part_index)
      if (const Key key = key_of(pass, part_index); copy_duration(key) > 0) reload_order_.push_back(key);
  }
}

HostTraffic::Key HostTraffic::key_of(const PipelinePass& pass, std::size_t part_index) const {
  const std::size_t parts = work_.chunks[static_cast<std::size_t>(pass.chunk)].size();
  return {pass.micro_batch, pass.chunk, pass.forward() ? part_index : parts - 1 - part_index};
}

Time HostTraffic::copy_duration(const Key& key) const {
  const auto chunk = static_cast<std::size_t>(std::get<1>(key)), part_index = std::get<2>(key);
  const std::int64_t bytes = work_.of(work_.chunks[chunk][part_index]).offloaded_bytes;
  return bytes == 0 ? 0 : serialization_ps(bytes, bits_per_second_);
}

void HostTraffic::before_part(const PipelinePass& pass, std::size_t part_index) {
  if (!splits(pass)) return;
  const Key key = key_of(pass, part_index);
  if (copy_duration(key) == 0) return;
  if (pass.forward()) {
    if (latest_offloads_.size() > 1) builder_.wait_for(latest_offloads_.front());
    return;
  }
  if (reloaded_count_ == used_count_) start_reload();
  MANYWORLDS_CHECK(reload_order_.at(used_count_) == key, "micro-batch {} is not what is needed next", pass.micro_batch);
  if (const auto reload = reload_ops_.find(key); reload != reload_ops_.end()) builder_.wait_for(reload->second);
  ++used_count_;
  start_reload();
}

void HostTraffic::after_part(const PipelinePass& pass, std::size_t part_index) {
  if (!pass.forward() || !splits(pass)) return;
  const Key key = key_of(pass, part_index);
  if (copy_duration(key) == 0) return;
  if (reloaded_count_ == used_count_ && used_count_ < reload_order_.size() && reload_order_[reloaded_count_] == key) {
    ++reloaded_count_;  // the activations are needed next and stay on the GPU
    return;
  }
  const std::uint32_t op = builder_.copy(Stream::offload, copy_duration(key), "offload", builder_.last_kernel());
  offload_ops_[key] = op;
  latest_offloads_.push_back(op);
  if (latest_offloads_.size() > 2) latest_offloads_.erase(latest_offloads_.begin());
  start_reload();
}

/// Starts the next reload, if that layer has been offloaded and no reloaded layer is waiting to be used.
void HostTraffic::start_reload() {
  if (reloaded_count_ > used_count_ || reloaded_count_ == reload_order_.size()) return;
  const Key& key = reload_order_[reloaded_count_];
  const auto sent = offload_ops_.find(key);
  if (sent == offload_ops_.end()) return;
  ProgramBuilder::Waits waits = builder_.last_kernel();
  waits.push_back(sent->second);
  reload_ops_[key] = builder_.copy(Stream::reload, copy_duration(key), "reload", waits);
  ++reloaded_count_;
}

}  // namespace manyworlds::core::workload
