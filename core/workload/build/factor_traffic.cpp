#include "core/workload/build/factor_traffic.hpp"

#include "core/compute/host.hpp"

namespace manyworlds::core::workload {

void FactorTraffic::gather(std::size_t chunk, std::size_t part_index) {
  const auto& parts = work_.chunks[chunk];
  const ModelPart part = parts[parts.size() - 1 - part_index];
  if (work_.of(part).factors.empty()) return;
  gathers_.push_back(
      {part, builder_.collective(Stream::data, Role::data, collective::Kind::all_gather,
                                 work_.of(part).gathered_factor_bytes(), "factors", builder_.all_work_so_far())});
}

void FactorTraffic::gather_all() {
  for (auto chunk = work_.model_order.rbegin(); chunk != work_.model_order.rend(); ++chunk)
    for (std::size_t part = 0; part < work_.chunks[*chunk].size(); ++part) gather(*chunk, part);
}

Time FactorTraffic::launch_ps() const {
  compute::HostWork launches;
  for (const Gather& each : gathers_)
    for (const WeightFactors& weight : work_.of(each.part).factors)
      for (const WorkItem& item : weight.gradient)
        if (work_.launched_by_host(item)) launches.kernels += item.kernel()->launches;
  return work_.launch_times.of(launches);
}

void FactorTraffic::compute_gradients() {
  if (gathers_.empty()) return;
  const std::uint32_t label = builder_.new_label("gradients of factors");
  const Time host_ps = launch_ps();
  const std::uint32_t launch = host_ps > 0 ? builder_.launch(host_ps, {}) : 0;
  for (const Gather& each : gathers_) {
    Time duration_ps = 0;
    for (const WeightFactors& weight : work_.of(each.part).factors)
      for (const WorkItem& item : weight.gradient) duration_ps += item.kernel()->cost.ps;
    builder_.wait_for(each.op);
    builder_.compute({StepPart::backward, duration_ps}, label);
  }
  if (host_ps == 0) return;
  builder_.wait_for(launch);
  builder_.compute({StepPart::host, 0}, label);
}

}  // namespace manyworlds::core::workload
