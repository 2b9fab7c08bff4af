// Memory of library workspaces, communicators and the driver context.
#include "core/memory/libraries.hpp"

#include "core/memory/activations.hpp"
#include "core/workload/model/architecture.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Model;
using workload::Strategy;

constexpr double kMiB = 1 << 20;
/// Forward and backward passes launch from separate threads, each with its own handle of the matrix library.
constexpr std::int64_t kLaunchThreads = 2;
/// Deterministic GEMMs need CUBLAS_WORKSPACE_CONFIG=:4096:8, eight buffers of 4 MiB, on every GPU.
constexpr std::int64_t kDeterministicWorkspace = 32 * (1 << 20);
/// Transformer Engine runs the GEMMs of experts on four streams, each with a workspace besides that of other GEMMs.
constexpr std::int64_t kExpertStreams = 4;

std::int64_t mib_to_bytes(double mib) {
  return static_cast<std::int64_t>(mib * kMiB);
}

std::int64_t workspace_bytes(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  const workload::Stack& stack = strategy.stack;
  std::int64_t sum =
      kLaunchThreads * (stack.deterministic ? kDeterministicWorkspace : mib_to_bytes(gpu.gemm_workspace_mib));
  if (stack.layers == workload::LayerLibrary::transformer_engine)
    sum += (model.has_experts() ? 1 + kExpertStreams : 1) * mib_to_bytes(gpu.engine_workspace_mib);
  else
    sum += shared_buffer_bytes(model, strategy);
  return sum;
}

/// Returns the number of communicators with more than one rank that a rank belongs to.
std::int64_t communicator_count(const Model& model, const Strategy& strategy) {
  std::int64_t count = 0;
  const auto add = [&count](std::int64_t members) { count += members > 1 ? 1 : 0; };
  add(strategy.tp);
  add(strategy.pp);
  add(strategy.cp);
  add(strategy.shards());
  add(strategy.zero_groups());
  if (model.has_experts() || workload::has_tables(model)) {
    add(strategy.ep);
    add(strategy.expert_shards());
    add(strategy.zero_groups());  // the experts' communicators across sharding groups are others than those above
  }
  return count;
}

}  // namespace

LibraryBytes library_bytes(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  return {workspace_bytes(model, strategy, gpu),
          communicator_count(model, strategy) * mib_to_bytes(gpu.communicator_mib), mib_to_bytes(gpu.context_mib)};
}

}  // namespace manyworlds::core::memory
