// SimAI's workload as it stands in its file (aliyun/SimAI, astra-sim-alibabacloud/astra-sim/workload/Workload.cc): a
// header, the number of layers, and a line per layer with the compute times in nanoseconds, the communication of each
// of its three passes, and what processing the result of a communication takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"

namespace manyworlds::experiments::simai {

/// In what order a simulator goes through the layers: Workload::iterate_* of SimAI. `transformer`: communication of
/// the forward pass and of input gradients is waited for, that of weight gradients is not. `model`: the communication
/// of input gradients runs beside the layer's weight gradients. `data`: weight gradients come before input gradients,
/// and only they communicate. `inference`: forward passes alone. `micro`: communication alone.
enum class Loop : std::uint8_t { transformer, model, data, inference, micro };

/// The group of a communication by the suffix of its type: none, _EP, _DP_EP.
enum class GroupSuffix : std::uint8_t { none, expert, expert_data };

/// One pass of a layer. No bytes: no communication.
struct LayerPass {
  std::int64_t compute_ns = 0;
  std::optional<core::collective::Kind> kind;
  GroupSuffix suffix = GroupSuffix::none;
  std::int64_t bytes = 0;
};

struct Layer {
  std::string id;
  int line = 0;
  LayerPass forward, input_gradient, weight_gradient;
  std::int64_t process_ns = 0;  // after each communication
};

struct WorkloadFile {
  std::string policy;  // the first word of the header
  Loop loop = Loop::transformer;
  bool is_hybrid = false;  // has model-parallel groups; else all ranks are one group
  bool has_weight_communication = true;
  std::uint32_t tp = 0, ep = 1, pp = 1, vpp = 1, micro_batches = 1, gpus = 0;  // 0: not said
  std::int64_t pipeline_bytes = 0;
  std::vector<std::uint32_t> checkpoints, checkpoint_initiates;  // layers
  std::vector<Layer> layers;
  std::vector<std::string> account;  // what is not known of the header, and lines behind the last layer
};

/// Returns whether a text begins as such a file does.
bool is_workload_file(std::string_view text);

/// Parses a file; `name` is its name in messages. Throws InputError with the line for a policy that is not known
/// (HYBRID_DLRM, HYBRID_DLRM_ENHANCED and HYBRID_CUSTOMIZED, whose groups depend on SimAI's topology, among them), for
/// a value that is no number in its range, for a type of communication that SimAI does not have, for a layer whose line
/// has other than 12 words, and for fewer layers than are promised.
WorkloadFile parse_workload_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::simai
