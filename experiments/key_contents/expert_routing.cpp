// The choices of section `routing`, and the expert loads that they give a model.
#include "experiments/key_contents/expert_routing.hpp"

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
      option("seed", &Zipf::seed, "seed that draws which expert is the r-th of a layer", {0, 9'007'199'254'740'992}),
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

std::string_view chosen_routing(const Settings& settings) {
  const auto found = settings.find("routing");
  return found == settings.end() ? "balanced" : std::string_view(std::get<std::string>(found->second));
}

auto table_of(const Settings& settings, const Inputs& inputs) -> import::RoutingTable {
  const std::string& path = std::get<std::string>(settings.at("routing.file"));
  const auto text = inputs.find(path);
  MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
  return import::parse_measured_routing(text->second, path);
}

/// Returns an error for the first layer in which an expert has more tokens than if every token chose it once.
std::string overloaded_expert(const Model& model, const import::RoutingTable& table) {
  for (std::int64_t layer = model.dense_layers; layer < model.layers; ++layer) {
    const std::vector<std::int64_t>& weights = table.at(layer);
    core::Int128 sum = 0;
    for (const std::int64_t weight : weights) sum += weight;
    const auto largest = std::max_element(weights.begin(), weights.end());
    if (core::Int128{*largest} * model.experts_per_token > sum + (sum >> 30))  // tolerance, since shares are rounded
      return fmt::format(
          "expert {} of layer {} has {:.1f} % of all, and with experts_per_token {} none can have more "
          "than {:.1f} %",
          largest - weights.begin(), layer, 100 * static_cast<double>(*largest) / static_cast<double>(sum),
          model.experts_per_token, 100 / static_cast<double>(model.experts_per_token));
  }
  return "";
}

std::string error_of(const Model& model, const import::RoutingTable& table) {
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
  return overloaded_expert(model, table);
}

}  // namespace

Section routing_section() {
  Section section;
  section.name = "routing";
  section.help = "how routers spread tokens over experts";
  section.choices = {{"balanced", "every expert gets as many tokens", {}},
                     {"zipf", "experts are chosen by Zipf's law, with another order of popularity in each layer",
                      zipf_options().infos()},
                     {"measured", "as a table of tokens by layer and expert says", measured_options().infos()}};
  return section;
}

RoutingChoice routing_of(const Settings& settings, const Inputs* inputs, const Model& model) {
  const std::string_view kind = chosen_routing(settings);
  if (kind == "balanced") return {};
  if (!model.has_experts()) return {nullptr, fmt::format("routing {}, experts 0", kind)};
  if (model.layers * model.experts > kMaxExpertLoads)
    return {nullptr, fmt::format("layers {}, experts {}", model.layers, model.experts)};
  if (kind == "zipf")
    return {core::workload::zipf_routing(model.layers, model.experts, std::get<double>(settings.at("routing.exponent")),
                                         std::get<std::int64_t>(settings.at("routing.seed"))),
            ""};
  if (inputs == nullptr) return {};
  const import::RoutingTable table = table_of(settings, *inputs);
  if (std::string error = error_of(model, table); !error.empty()) return {nullptr, std::move(error)};
  std::vector<std::vector<std::int64_t>> by_layer(static_cast<std::size_t>(model.layers));
  for (const auto& [layer, weights] : table) by_layer[static_cast<std::size_t>(layer)] = weights;
  return {core::workload::make_routing(by_layer), ""};
}

}  // namespace manyworlds::experiments
