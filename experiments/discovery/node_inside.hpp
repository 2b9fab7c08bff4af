// The inside of a node as NCCL and nvidia-smi describe it: GPUs, NICs, and which of them share a PCIe switch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::clusters {

struct NodeNic {
  std::string name;
  double gbps = 0;                 // 0: the file does not tell
  std::vector<std::int64_t> near;  // GPUs on its PCIe switch
};

struct NodeInside {
  std::string format;
  std::int64_t gpus = 0;
  std::int64_t compute_capability = 0;  // 90 for sm_90; 0: the file does not tell
  std::int64_t nvlinks = 0;             // of most GPUs; 0: none, or the file does not tell
  std::vector<NodeNic> nics;
  std::vector<std::string> notes;
};

bool is_nccl_topology(std::string_view text);
bool is_nvidia_smi_matrix(std::string_view text);
bool is_netq_nodes(std::string_view text);

/// Return the node; `name` is the file name in messages. Throw InputError, with the line, for a text that is torn, has
/// no GPU, or is of nodes that are unlike each other.
NodeInside parse_nccl_topology(std::string_view text, const std::string& name);
NodeInside parse_nvidia_smi_matrix(std::string_view text, const std::string& name);
NodeInside parse_netq_nodes(std::string_view text, const std::string& name);

/// Returns the rate of the NICs that carry traffic of GPUs; slower ones (storage, management) are removed and noted.
double keep_fast_nics(NodeInside& node);

/// Returns the node as rows of a table.
std::string node_text(const NodeInside& node);

}  // namespace manyworlds::experiments::clusters
