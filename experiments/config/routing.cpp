// The alternatives of `routing`, and what each makes of a model's experts.
#include "experiments/config/routing.hpp"

#include <algorithm>
#include <numeric>

#include "experiments/import/measured_routing.hpp"

namespace manyworlds::experiments {
namespace {

using core::option;
using core::workload::Model;
using core::workload::Routing;

struct Zipf {
  double exponent = 1;
  std::int64_t seed = 1;
};
const core::OptionTable<Zipf>& zipf_options() {
  static const core::OptionTable<Zipf> table{
      option("exponent", &Zipf::exponent, "the r-th expert of a layer is chosen in proportion to r^-exponent", {0, 10}),
      option("seed", &Zipf::seed, "which expert is the r-th of a layer is drawn from this", {0, 9'007'199'254'740'992}),
  };
  return table;
}

struct MeasuredTable {
  std::string file;
};
const core::OptionTable<MeasuredTable>& measured_options() {
  static const core::OptionTable<MeasuredTable> table{
      option("file", &MeasuredTable::file, "table of tokens, or shares of them, by layer and expert (docs/formats.md)",
             {}, "file"),
  };
  return table;
}

std::string_view chosen(const Settings& settings) {
  const auto found = settings.find("routing");
  return found == settings.end() ? "balanced" : std::string_view(std::get<std::string>(found->second));
}

import::RoutingTable table_of(const Settings& settings, const Inputs& inputs){
    const std::string& path = std::get<std::string>(settings.at("routing.file"));
const auto text = inputs.find(path);
MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
return import::parse_measured_routing(text->second, path);
}  // namespace

/// The first layer with experts that gives one of them more of the tokens than each can go there once.
std::string too_hot(const Model& model, const import::RoutingTable& table) {
  for (std::int64_t layer = model.dense_layers; layer < model.layers; ++layer) {
    const std::vector<std::int64_t>& weights = table.at(layer);
    core::Wide sum = 0;
    for (const std::int64_t weight : weights) sum += weight;
    const auto most = std::max_element(weights.begin(), weights.end());
    if (core::Wide{*most} * model.experts_per_token > sum + (sum >> 30))  // shares are rounded
      return fmt::format(
          "expert {} of layer {} has {:.1f} % of all, and with experts_per_token {} none can have more "
          "than {:.1f} %",
          most - weights.begin(), layer, 100 * static_cast<double>(*most) / static_cast<double>(sum),
          model.experts_per_token, 100 / static_cast<double>(model.experts_per_token));
  }
  return "";
}

std::string fault_of(const Model& model, const import::RoutingTable& table) {
  for (std::int64_t layer = model.dense_layers; layer < model.layers; ++layer) {
    const auto found = table.find(layer);
    if (found == table.end()) return fmt::format("the table has no layer {}, which has experts", layer);
    if (static_cast<std::int64_t>(found->second.size()) != model.experts)
      return fmt::format("layer {} has {} experts in the table, and {} in the model", layer, found->second.size(),
                         model.experts);
  }
  for (const auto& [layer, weights] : table)
    if (layer < model.dense_layers || layer >= model.layers)
      return fmt::format("the table has a layer {}, and the model has no experts there", layer);
  return too_hot(model, table);
}

}  // namespace manyworlds::experiments

Branch routing_branch() {
  Branch branch;
  branch.name = "routing";
  branch.help = "how routers spread tokens over experts";
  branch.alternatives = {
      {"balanced", "every expert gets as many tokens", {}},
      {"zipf", "experts are chosen by Zipf's law, in each layer others most often", zipf_options().infos()},
      {"measured", "as a table of tokens by layer and expert says", measured_options().infos()}};
  return branch;
}

RoutingChoice routing_of(const Settings& settings, const Inputs* inputs, const Model& model) {
  const std::string_view kind = chosen(settings);
  if (kind == "balanced") return {};
  if (!model.has_experts()) return {nullptr, fmt::format("routing {}, experts 0", kind)};
  if (model.layers * model.experts > kMostLoads)
    return {nullptr, fmt::format("layers {}, experts {}", model.layers, model.experts)};
  if (kind == "zipf")
    return {core::workload::zipf_routing(model.layers, model.experts, std::get<double>(settings.at("routing.exponent")),
                                         std::get<std::int64_t>(settings.at("routing.seed"))),
            ""};
  if (inputs == nullptr) return {};
  const import::RoutingTable table = table_of(settings, *inputs);
  if (std::string fault = fault_of(model, table); !fault.empty()) return {nullptr, std::move(fault)};
  std::vector<std::vector<std::int64_t>> by_layer(static_cast<std::size_t>(model.layers));
  for (const auto& [layer, weights] : table) by_layer[static_cast<std::size_t>(layer)] = weights;
  return {core::workload::make_routing(by_layer), ""};
}

}  // namespace manyworlds::experiments
