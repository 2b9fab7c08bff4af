// Bytes of workspaces, communicators and context.
#include "core/memory/libraries.hpp"

#include "core/memory/activations.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Model;
using workload::Strategy;

constexpr double kMiB = 1 << 20;
/// Forward and backward pass launch from threads of their own, each with its handle of the matrix library.
constexpr std::int64_t kThreads = 2;
/// Deterministic GEMMs need CUBLAS_WORKSPACE_CONFIG=:4096:8, eight buffers of 4 MiB, on every GPU.
constexpr std::int64_t kDeterministicWorkspace = 32 * (1 << 20);
/// Transformer Engine runs the GEMMs of experts on four streams, each with a workspace beside that of other GEMMs.
constexpr std::int64_t kExpertStreams = 4;

std::int64_t bytes(double mib) {
  return static_cast<std::int64_t>(mib * kMiB);
}

std::int64_t workspace_bytes(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  const workload::Stack& stack = strategy.stack;
  std::int64_t sum = kThreads * (stack.deterministic ? kDeterministicWorkspace : bytes(gpu.gemm_workspace_mib));
  if (stack.layers == workload::LayerLibrary::transformer_engine)
    sum += (model.has_experts() ? 1 + kExpertStreams : 1) * bytes(gpu.engine_workspace_mib);
  else
    sum += score_bytes(model, strategy);  // Megatron-LM's own attention has one buffer of scores for all layers
  return sum;
}

/// Groups of more than one rank that this rank belongs to.
std::int64_t communicators(const Model& model, const Strategy& strategy) {
  std::int64_t count = 0;
  const auto add = [&count](std::int64_t members) { count += members > 1 ? 1 : 0; };
  add(strategy.tp);
  add(strategy.pp);
  add(strategy.cp);
  add(strategy.shards());
  add(strategy.zero_groups());
  if (model.has_experts()) {
    add(strategy.ep);
    add(strategy.expert_shards());
    add(strategy.zero_groups());
  }
  return count;
}

}  // namespace

LibraryBytes library_bytes(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  return {workspace_bytes(model, strategy, gpu), communicators(model, strategy) * bytes(gpu.communicator_mib),
          bytes(gpu.context_mib)};
}

}  // namespace manyworlds::core::memory
