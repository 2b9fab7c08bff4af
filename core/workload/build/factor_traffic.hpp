// Exchange of sufficient factors in a step of one micro-batch: a part's factors are gathered on the stream of the
// gradient buckets, all of them in one collective; the gradients of their weights are computed behind the last backward
// pass, each part's when its factors have arrived.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/build/program_builder.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

/// `work` and `builder` must outlive the object.
class FactorTraffic {
 public:
  FactorTraffic(const StageWork& work, ProgramBuilder& builder) : work_(work), builder_(builder) {}

  /// Issues the gather of a part's factors behind all work so far; `part_index` counts in backward order.
  void gather(std::size_t chunk, std::size_t part_index);
  void gather_all();
  /// Issues the kernels that compute gradients from all that was gathered.
  void compute_gradients();

 private:
  struct Gather {
    ModelPart part;
    std::uint32_t op;
  };
  /// Returns the host's launches of these kernels.
  Time launch_ps() const;

  const StageWork& work_;
  ProgramBuilder& builder_;
  std::vector<Gather> gathers_;
};

}  // namespace manyworlds::core::workload
