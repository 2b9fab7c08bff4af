// Any text as each of the files of a cluster: a fabric that can be written and read again, or a refusal.
#include "core/base/error.hpp"
#include "experiments/clusters/fabric_file.hpp"
#include "experiments/clusters/host_graph.hpp"
#include "experiments/clusters/node_list.hpp"
#include "experiments/clusters/survey.hpp"
#include "experiments/discovery/cluster_files.hpp"
#include "experiments/discovery/infragraph.hpp"
#include "experiments/nccl/nccl_inspector.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

void use(clusters::Fabric fabric) {
  clusters::assume_rates(fabric, 400, 2, 1);
  clusters::survey_text(fabric, clusters::survey_of(fabric), 8);
  const std::string text = clusters::fabric_yaml(fabric);
  try {
    const clusters::Fabric again = clusters::parse_fabric_file(text, "again.yaml");
    fuzz::require(clusters::fabric_yaml(again) == text);
    topologies::FabricSpec spec;
    spec.gpus_per_node = 2, spec.scale_up_bits_per_second = 1'000'000, spec.scale_up_latency_ps = 1;
    spec.nic_bits_per_second = 1'000'000, spec.nic_latency_ps = 1, spec.host_bits_per_second = 1'000'000;
    clusters::build_host_graph(again, spec, {});
  } catch (const core::InputError&) {
  }
}

template <class Read>
void attempt(Read&& read) {
  try {
    read();
  } catch (const core::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    clusters::ClusterFiles files;
    clusters::read_cluster_text(files, text, "file");
    if (files.fabric) use(std::move(*files.fabric));
    if (files.node) clusters::keep_fast_nics(*files.node), clusters::node_text(*files.node);
  });
  attempt([&] { use(clusters::parse_infragraph({{"file", text}}).fabric); });
  attempt([&] { use(clusters::parse_fabric_file(text, "file")); });
  attempt([&] { clusters::expand_node_list(text); });
  attempt([&] { import::parse_nccl_inspector(text, "file"); });
  return 0;
}
