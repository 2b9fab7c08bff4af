#include "farm/net/net_collective.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/collective/algorithms/registry.hpp"
#include "core/network/fabric/router.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::farm {

using core::collective::Kind;
using core::collective::Library;
using core::collective::Shape;

namespace {

/// Every kind that a user may name; a send is a flow and not a collective.
constexpr std::array kKinds{Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                            Kind::all_to_all, Kind::broadcast,  Kind::reduce};

Kind kind_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind kind : kKinds) {
    names.emplace_back(core::collective::name_of(kind));
    if (names.back() == name) return kind;
  }
  throw core::InputError(experiments::suggestion(name, names).substr(2), "--collective " + name);
}

/// Returns the document's library, configured to use `algorithm` for this kind.
Library library_with(const Library& library, const std::string& kind, const std::string& algorithm) {
  const auto& table = core::collective::library_options();
  const auto infos = table.infos();
  const auto info = std::find_if(infos.begin(), infos.end(), [&](const auto& one) { return one.name == kind; });
  MANYWORLDS_CHECK(info != infos.end(), "no option for {}", kind);
  if (std::find(info->choices.begin(), info->choices.end(), algorithm) == info->choices.end())
    throw core::InputError(experiments::suggestion(algorithm, info->choices).substr(2), "--algorithm " + algorithm);
  core::OptionSet values = table.read(library);
  values[kind] = algorithm;
  Library configured = table.make(values);
  configured.calibration = library.calibration;  // a property of the GPU, not an option of the library
  return configured;
}

}  // namespace

core::collective::Communicator communicator_of_all(const core::step::Configuration& configuration) {
  core::network::Router router(configuration.graph, core::network::path_choice_of(configuration.transport));
  std::vector<std::uint32_t> members(configuration.graph->gpus);
  std::iota(members.begin(), members.end(), 0u);
  return core::step::communicator_of(router, members, static_cast<std::uint32_t>(configuration.gpus_per_node));
}

std::string tuner_of(const core::step::Configuration& configuration, const std::string& kind,
                     const std::string& algorithm, std::int64_t bytes) {
  const Library& library = configuration.collectives;
  if (library.tuner_rules.empty()) return "";
  if (!algorithm.empty()) return "--algorithm, not what collectives.msccl_files and collectives.tuner_file say";
  const core::collective::TunerRule* rule =
      rule_for(library, communicator_of_all(configuration), kind_named(kind), bytes);
  if (rule == nullptr)
    return "the library, as none of collectives.msccl_files and no line of collectives.tuner_file matches";
  if (rule->given) return fmt::format("{} of collectives.msccl_files", rule->file);
  return fmt::format("line {} of collectives.tuner_file", rule->line);
}

Shape collective_of(const core::step::Configuration& configuration, const std::string& kind,
                    const std::string& algorithm, std::int64_t bytes) {
  const Kind kind_value = kind_named(kind);
  const std::uint32_t gpus = configuration.graph->gpus;
  if (gpus < 2) throw core::InputError("a collective needs at least two GPUs", "--collective");
  const Library library =
      algorithm.empty() ? configuration.collectives : library_with(configuration.collectives, kind, algorithm);
  const core::collective::Communicator communicator = communicator_of_all(configuration);
  if ((algorithm == "two_level" || algorithm == "node_aware") &&
      (communicator.per_node < 2 || communicator.per_node == gpus))
    throw core::InputError("needs several nodes with several GPUs each", "--algorithm " + algorithm);
  return core::collective::choose_shape(library, communicator, kind_value, bytes);
}

}  // namespace manyworlds::farm
