// Builds the tree of keys from the option tables and registries.
#include "experiments/config/config_schema.hpp"

#include <algorithm>

#include "core/network/transports/registry.hpp"
#include "experiments/config/collective_groups.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/key_contents/documents.hpp"
#include "experiments/key_contents/expert_routing.hpp"
#include "experiments/key_contents/measured_shapes.hpp"
#include "experiments/key_contents/named_tables.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;

OptionInfo text_option(std::string name, std::string help, std::vector<std::string> choices,
                       std::string default_value) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.choices = std::move(choices);
  info.default_value = std::move(default_value);
  return info;
}

Section make_section(std::string name, std::string help, std::vector<OptionInfo> options) {
  Section section;
  section.name = std::move(name);
  section.help = std::move(help);
  section.options = std::move(options);
  return section;
}

Section make_catalog_section(std::string name, std::string help, std::vector<OptionInfo> options, std::string kind) {
  Section section = make_section(std::move(name), std::move(help), std::move(options));
  section.catalog = std::move(kind);
  section.options.insert(section.options.begin(), text_option("name", "what tables call it", {}, ""));
  return section;
}

/// Removes the default of an option, because it follows from other settings: derive() fills it in.
std::vector<OptionInfo> without_default(std::vector<OptionInfo> options, const std::string& name) {
  for (OptionInfo& info : options)
    if (info.name == name) info.default_value = "";
  return options;
}

Section transport_section() {
  Section section = make_section("transport", "what senders and switches do", {});
  for (const core::network::TransportType& type : core::network::transports())
    section.choices.push_back({type.name, type.help, options_of(type)});
  return section;
}

Section topology_section() {
  Section section = make_section("topology", "the fabric between the nodes", {});
  for (const topologies::Topology& topology : topologies::registry())
    section.choices.push_back({topology.name, topology.help, topology.options, topology.also_called});
  return section;
}

std::vector<OptionInfo> model_options_and_carried() {
  std::vector<OptionInfo> options = core::workload::model_options().infos();
  options.push_back(text_option("carried",
                                "what of the model changes no step and goes into what --emit prints, as arguments of "
                                "Megatron-LM: rotary-base=500000 norm-epsilon=1e-05 add-qkv-bias",
                                {}, ""));
  return options;
}

Section collectives_section() {
  std::vector<OptionInfo> options = core::collective::library_options().infos();
  for (const OptionInfo& info : tuner_table_options().infos()) options.push_back(info);
  Section section = make_section("collectives", "algorithms of collectives", std::move(options));
  for (const CollectiveGroup& group : collective_groups()) {
    Section own = make_section(group.name, group.help, core::collective::group_algorithm_options().infos());
    own.optional = true;
    section.subsections.push_back(std::move(own));
  }
  return section;
}

Section program_section(const std::vector<OptionInfo>& gpu) {
  Section section = make_section("program", "programs of the ranks that are given, in place of model and strategy",
                                 program_options().infos());
  section.subsections.push_back(make_catalog_section(
      "measured_on", "the GPU on which their times were measured; that which the file names, if it is not given", gpu,
      "gpus"));
  section.subsections.back().optional = true;
  return section;
}

Section make_config_schema() {
  Section root = make_section("base", "one experiment", step_options().infos());
  root.options.push_back(text_option(
      "fidelity",
      "packet: every packet on every link; fluid: collectives share links max-min fairly, with an error that is "
      "measured; analytic: a lower bound without contention, for screening",
      core::network::fidelity_names(), "packet"));
  std::vector<OptionInfo> machines = cluster_options().infos();
  for (const OptionInfo& info : machine_power_options().infos()) machines.push_back(info);
  for (const OptionInfo& info : price_options().infos()) machines.push_back(info);
  Section cluster = make_catalog_section("cluster", "machines, GPUs and NICs", std::move(machines), "clusters");
  std::vector<OptionInfo> gpu = core::compute::gpu_options().infos();
  for (OptionInfo& info : gpu)
    if (info.name == "measured_shapes") info.choices = shape_table_names();
  for (const OptionInfo& info : core::collective::calibration_options().infos()) gpu.push_back(info);
  for (const OptionInfo& info : kernel_table_options().infos()) gpu.push_back(info);
  for (const OptionInfo& info : power_options().infos()) gpu.push_back(info);
  cluster.subsections.push_back(make_catalog_section("gpu", "the accelerator", gpu, "gpus"));
  for (const char* name : kNodeGroups) {
    Section group = make_section(name, "further nodes of another kind; library constants are those of cluster.gpu",
                                 node_group_options().infos());
    group.optional = true;
    group.subsections.push_back(make_catalog_section("gpu", "their accelerator", gpu, "gpus"));
    cluster.subsections.push_back(std::move(group));
  }
  std::vector<OptionInfo> layout_options = core::workload::strategy_options().infos();
  for (const OptionInfo& info : schedule_file_options().infos()) layout_options.push_back(info);
  Section strategy = make_section("strategy", "how the model is divided over ranks", std::move(layout_options));
  strategy.subsections.push_back(
      make_catalog_section("stack", "what the training software does",
                           without_default(core::workload::stack_options().infos(), "precision"), "stacks"));
  root.subsections = {
      make_catalog_section("model", "the transformer", model_options_and_carried(), "models"),
      std::move(cluster),
      routing_section(),
      documents_section(),
      topology_section(),
      make_section("faults", "what is broken in the fabric", fault_options().infos()),
      make_section("placement", "which rank sits on which GPU", placement_options().infos()),
      transport_section(),
      collectives_section(),
      std::move(strategy),
      program_section(gpu),
      make_section("training", "a whole training run: its length, its failures and its checkpoints",
                   training_options().infos()),
      make_section("skip", "fast-forwarding: what need not be simulated packet by packet", skip_options().infos()),
      make_section("fluid", "how the error of fidelity fluid is measured", fluid_options().infos()),
      make_section("limit", "limits of one experiment", limit_options().infos())};
  return root;
}

const Section* find_catalog_section(const Section& section, const std::string& kind) {
  if (section.catalog == kind) return &section;
  for (const Section& child : section.subsections)
    if (const Section* found = find_catalog_section(child, kind)) return found;
  return nullptr;
}

}  // namespace

const Section& config_schema() {
  static const Section root = make_config_schema();
  return root;
}

const Section& catalog_section(const std::string& kind) {
  const Section* found = find_catalog_section(config_schema(), kind);
  MANYWORLDS_CHECK(found, "no branch is filled by '{}'", kind);
  return *found;
}

}  // namespace manyworlds::experiments
