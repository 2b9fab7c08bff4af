// Any texts as ASTRA-sim's files, beside a small workload: programs of that workload, or a refusal. The input is
// system.json, network.yml and the remote memory file, with a line "%%" between them; and behind these the traces of an
// algorithm in place of the all-reduce, one for each place.
#include "experiments/astra_sim/read_astra_sim.hpp"
#include "experiments/chakra/trace.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

/// Returns the text up to the next "%%", and moves behind it.
std::string next_text(std::string_view& rest) {
  const std::size_t end = rest.find("\n%%\n");
  const std::string text(rest.substr(0, end));
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 4);
  return text;
}

template <class Parse>
auto parsed(const Parse& parse, const std::string& name) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, name);
    return std::nullopt;
  }
}

/// A collective of each kind with a kernel before it, and an access of memory, on every rank.
std::string workload() {
  using chakra::Attribute;
  chakra::Trace trace{"0.0.4", {}, {}};
  const auto add = [&](chakra::NodeType type, std::vector<std::pair<const char*, std::uint64_t>> attributes) {
    chakra::TraceNode node;
    node.id = trace.nodes.size();
    node.name = "node";
    node.type = static_cast<std::uint32_t>(type);
    node.duration_us = 3;
    if (!trace.nodes.empty()) node.data_deps = {node.id - 1};
    for (const auto& [name, value] : attributes)
      node.attributes.push_back(Attribute::of(name, Attribute::kInt64, value));
    trace.nodes.push_back(std::move(node));
  };
  add(chakra::NodeType::comp, {{"num_ops", 1'000'000}, {"tensor_size", 4096}});
  for (const chakra::CommType type : {chakra::CommType::all_reduce, chakra::CommType::all_gather,
                                      chakra::CommType::reduce_scatter, chakra::CommType::all_to_all})
    add(chakra::NodeType::comm_coll, {{"comm_type", static_cast<std::uint64_t>(type)}, {"comm_size", 1 << 20}});
  return chakra::trace_bytes(trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string system_text = next_text(rest), network_text = next_text(rest), memory_text = next_text(rest);
  const auto system = parsed([&] { return astra_sim::parse_system_file(system_text, "s.json"); }, "s.json");
  const auto network = parsed([&] { return astra_sim::parse_network_file(network_text, "n.yml"); }, "n.yml");
  if (network) parsed([&] { return astra_sim::parse_memory_file(memory_text, "m.json", network->ranks()); }, "m.json");
  parsed([&] { return astra_sim::parse_per_node_file(memory_text, "p.yml"); }, "p.yml");
  std::vector<chakra::TraceFile> places;
  while (!rest.empty()) places.push_back({"o.et", next_text(rest)});
  const auto own = parsed([&] { return astra_sim::parse_custom_algorithm(places, "o.et"); }, "o.et");
  if (!system || !network) return 0;
  // Many ranks and many chunks are lawful, and slow.
  if (network->ranks() > 64 || system->splits > 64) return 0;
  astra_sim::Configuration configuration{*system, *network, std::nullopt, {}};
  if (own && !places.empty())
    configuration.custom.of_kind[core::collective::Kind::all_reduce] = configuration.custom.add(*own);
  for (const astra_sim::Communication how :
       {astra_sim::Communication(), astra_sim::Communication(astra_sim::Congestion::unaware),
        astra_sim::Communication(astra_sim::Congestion::aware)})
    try {
      fuzz::require_programs(
          astra_sim::import_astra_sim({{"t.0.et", workload()}}, "", "t", configuration, how).programs);
    } catch (const core::InputError&) {
    }
  return 0;
}
