// Puts the option tables and registries together into the tree of keys.
#include "experiments/config/vocabulary.hpp"

#include <algorithm>

#include "core/network/transports/registry.hpp"
#include "experiments/config/inputs.hpp"
#include "experiments/config/routing.hpp"
#include "experiments/config/world.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;

OptionInfo text_option(std::string name, std::string help, std::vector<std::string> choices, std::string fallback) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.choices = std::move(choices);
  info.fallback = std::move(fallback);
  return info;
}

Branch section(std::string name, std::string help, std::vector<OptionInfo> options) {
  Branch branch;
  branch.name = std::move(name);
  branch.help = std::move(help);
  branch.options = std::move(options);
  return branch;
}

Branch cataloged(std::string name, std::string help, std::vector<OptionInfo> options, std::string kind) {
  Branch branch = section(std::move(name), std::move(help), std::move(options));
  branch.catalog = std::move(kind);
  branch.options.insert(branch.options.begin(), text_option("name", "what tables call it", {}, ""));
  return branch;
}

/// Options whose default follows from other settings: derive() fills in what nobody gave.
std::vector<OptionInfo> without_default(std::vector<OptionInfo> options, const std::string& name) {
  for (OptionInfo& info : options)
    if (info.name == name) info.fallback = "";
  return options;
}

Branch transport_branch() {
  Branch branch = section("transport", "what senders and switches do", {});
  for (const core::network::TransportType& type : core::network::transports())
    branch.alternatives.push_back({type.name, type.help, options_of(type)});
  return branch;
}

Branch topology_branch() {
  Branch branch = section("topology", "the fabric between the nodes", {});
  for (const topologies::Topology& topology : topologies::registry())
    branch.alternatives.push_back({topology.name, topology.help, topology.options, topology.also_called});
  return branch;
}

Branch make_vocabulary() {
  Branch root = section("base", "one experiment", step_options().infos());
  root.options.push_back(text_option("fidelity",
                                     "packet: every packet on every link; analytic: a lower bound that knows no "
                                     "contention, for screening",
                                     {"packet", "analytic"}, "packet"));  // in the order of core::network::Fidelity
  std::vector<OptionInfo> machines = cluster_options().infos();
  for (const OptionInfo& info : machine_power_options().infos()) machines.push_back(info);
  for (const OptionInfo& info : price_options().infos()) machines.push_back(info);
  Branch cluster = cataloged("cluster", "machines, GPUs and NICs", std::move(machines), "clusters");
  std::vector<OptionInfo> gpu = core::compute::gpu_options().infos();
  for (const OptionInfo& info : core::collective::calibration_options().infos()) gpu.push_back(info);
  for (const OptionInfo& info : kernel_table_options().infos()) gpu.push_back(info);
  for (const OptionInfo& info : power_options().infos()) gpu.push_back(info);
  cluster.branches.push_back(cataloged("gpu", "the accelerator", gpu, "gpus"));
  for (const char* name : kNodeGroups) {
    Branch group = section(name, "more nodes, of another kind; figures of the communication library are cluster.gpu's",
                           node_group_options().infos());
    group.optional = true;
    group.branches.push_back(cataloged("gpu", "their accelerator", gpu, "gpus"));
    cluster.branches.push_back(std::move(group));
  }
  std::vector<OptionInfo> cuts = core::workload::strategy_options().infos();
  for (const OptionInfo& info : schedule_file_options().infos()) cuts.push_back(info);
  Branch strategy = section("strategy", "how the model is cut over ranks", std::move(cuts));
  strategy.branches.push_back(cataloged("stack", "what the training software does",
                                        without_default(core::workload::stack_options().infos(), "precision"),
                                        "stacks"));
  root.branches = {cataloged("model", "the transformer", core::workload::model_options().infos(), "models"),
                   std::move(cluster),
                   routing_branch(),
                   topology_branch(),
                   section("faults", "what is broken in the fabric", fault_options().infos()),
                   section("placement", "which rank sits on which GPU", placement_options().infos()),
                   transport_branch(),
                   section("collectives", "algorithms of collectives", core::collective::library_options().infos()),
                   std::move(strategy),
                   section("training", "a whole training run: its length, its failures and its checkpoints",
                           training_options().infos()),
                   section("skip", "what need not be simulated packet by packet", skip_options().infos()),
                   section("limit", "counted limits of one world", limit_options().infos())};
  return root;
}

const Branch* search(const Branch& branch, const std::string& kind) {
  if (branch.catalog == kind) return &branch;
  for (const Branch& child : branch.branches)
    if (const Branch* found = search(child, kind)) return found;
  return nullptr;
}

}  // namespace

const Branch& vocabulary() {
  static const Branch root = make_vocabulary();
  return root;
}

const Branch& catalog_branch(const std::string& kind) {
  const Branch* found = search(vocabulary(), kind);
  MANYWORLDS_CHECK(found, "no branch is filled by '{}'", kind);
  return *found;
}

bool has_default(const OptionInfo& option) {
  if (const auto* whole = std::get_if<std::int64_t>(&option.fallback))
    return static_cast<double>(*whole) >= option.minimum && static_cast<double>(*whole) <= option.maximum;
  if (const auto* broken = std::get_if<double>(&option.fallback))
    return *broken >= option.minimum && *broken <= option.maximum;
  const auto* text = std::get_if<std::string>(&option.fallback);
  return text == nullptr || !text->empty() || option.choices.empty();
}

bool is_file(const OptionInfo& option) {
  return option.unit == "file";
}

const OptionInfo* find_option(const std::vector<OptionInfo>& options, const std::string& name) {
  for (const OptionInfo& info : options)
    if (info.name == name) return &info;
  return nullptr;
}

const Branch* find_branch(const std::vector<Branch>& branches, const std::string& name) {
  for (const Branch& branch : branches)
    if (branch.name == name) return &branch;
  return nullptr;
}

const Alternative* find_alternative(const Branch& branch, const std::string& name) {
  for (const Alternative& alternative : branch.alternatives)
    if (alternative.name == name) return &alternative;
  return nullptr;
}

const Alternative* alternative_called(const Branch& branch, std::string typed) {
  std::replace(typed.begin(), typed.end(), '-', '_');
  if (const Alternative* named = find_alternative(branch, typed)) return named;
  for (const Alternative& alternative : branch.alternatives)
    if (std::count(alternative.also_called.begin(), alternative.also_called.end(), typed) > 0) return &alternative;
  return nullptr;
}

std::vector<std::string> names_in(const Branch& branch) {
  std::vector<std::string> names;
  for (const Branch& child : branch.branches) names.push_back(child.name);
  for (const OptionInfo& info : branch.options) names.push_back(info.name);
  for (const Alternative& alternative : branch.alternatives) names.push_back(alternative.name);
  return names;
}

}  // namespace manyworlds::experiments
