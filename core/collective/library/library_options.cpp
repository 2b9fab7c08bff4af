// The option table of a communication library: one row per kind of operation, with the algorithms that support it.
#include <fmt/ranges.h>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/library.hpp"

namespace manyworlds::core::collective {
namespace {

template <class Owner, class Value>
typename OptionTable<Owner>::Row named_choice(std::string name, std::string help, Value Owner::*member,
                                              std::vector<std::pair<std::string, Value>> names) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  for (const auto& [choice_name, value] : names) info.choices.push_back(choice_name);
  return {info,
          [member, names](Owner& to, const OptionValue& value) {
            for (const auto& [choice_name, named_value] : names)
              if (choice_name == std::get<std::string>(value)) to.*member = named_value;
          },
          [member, names](const Owner& from) {
            for (const auto& [choice_name, named_value] : names)
              if (named_value == from.*member) return OptionValue(choice_name);
            throw InternalError("a library has a value without a name");
          }};
}

bool is_half(Kind kind) {
  return kind == Kind::all_gather || kind == Kind::reduce_scatter;
}

/// Returns the algorithms of a kind of operation, by the names that users give.
template <class Value>
std::vector<std::pair<std::string, Value>> algorithms_of(Kind kind) {
  std::vector<std::pair<std::string, Value>> names;
  for (const AlgorithmInfo& info : algorithms())
    if (supports(info.algorithm, kind)) names.emplace_back(info.name, info.algorithm);
  names.emplace_back("auto", Algorithm::automatic);
  if (is_half(kind)) names.emplace_back("as_all_reduce", Algorithm::as_all_reduce);
  return names;
}

OptionTable<Library>::Row algorithm(Kind kind, Algorithm Library::*member) {
  std::string help = fmt::format(
      "algorithm of {} operations; auto: the fastest by alpha and beta, or with protocol: calibrated that of NCCL's "
      "tuner",
      name_of(kind));
  if (is_half(kind)) help += "; as_all_reduce: that of all_reduce if it has this half, otherwise ring";
  return named_choice(name_of(kind), std::move(help), member, algorithms_of<Algorithm>(kind));
}

OptionTable<GroupAlgorithms>::Row group_algorithm(Kind kind, std::optional<Algorithm> GroupAlgorithms::*member) {
  auto names = algorithms_of<std::optional<Algorithm>>(kind);
  names.emplace_back("library", std::nullopt);
  return named_choice(
      name_of(kind),
      fmt::format("algorithm of {} operations in these groups; library: as in all others", name_of(kind)), member,
      std::move(names));
}

/// Returns the names of the algorithms that divide transfers into chunks: "ring, double_tree or chain".
std::string pipelined_algorithms() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : algorithms())
    if (info.pipelined) names.emplace_back(info.name);
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

}  // namespace

const OptionTable<Library>& library_options() {
  static const OptionTable<Library> table{
      algorithm(Kind::all_reduce, &Library::all_reduce),
      algorithm(Kind::all_gather, &Library::all_gather),
      algorithm(Kind::reduce_scatter, &Library::reduce_scatter),
      algorithm(Kind::all_to_all, &Library::all_to_all),
      algorithm(Kind::broadcast, &Library::broadcast),
      algorithm(Kind::reduce, &Library::reduce),
      named_choice<Library, Protocol>(
          "protocol",
          "costs of launching and handing on, and flags among the data; none: no such costs; calibrated: "
          "what the GPU's library_ figures say, with their share of the NICs' rate",
          &Library::protocol,
          {{"none", Protocol::none},
           {"ll", Protocol::ll},
           {"ll128", Protocol::ll128},
           {"simple", Protocol::simple},
           {"auto", Protocol::automatic},
           {"calibrated", Protocol::calibrated}}),
      option("channels", &Library::channels,
             "connections side by side that rings, chains and trees spread over, beginning at different GPUs of a "
             "node, or servers of a parameter_server (1 with 0); 0: as many as their members have NICs in a node, or "
             "as share every link of a node that is a full mesh",
             {0, 64}),
      option("qps_per_connection", &Library::qps_per_connection,
             "queue pairs of a connection between nodes, each with a five-tuple, and so a hashed path, of its own "
             "(NCCL_IB_QPS_PER_CONNECTION)",
             {1, 128}),
      option("split_data_on_qps", &Library::split_data_on_qps,
             "every message is divided evenly over the queue pairs of its connection; false: they take whole messages "
             "in turn (NCCL_IB_SPLIT_DATA_ON_QPS)"),
      option("message_bytes", &Library::message_bytes,
             "most that a message carries which one of several queue pairs takes; a quarter of NCCL_BUFFSIZE",
             {1, static_cast<double>(std::int64_t{1} << 40)}, "bytes"),
      choice("version", &Library::version, version_names(),
             "version of the communication library (NCCL) of protocol: calibrated, or the next older one of these; "
             "2.10 is that of 2020 to 2023"),
      option(
          "ll128_between_nodes", &Library::ll128_between_nodes,
          "protocol: calibrated considers LL128 between nodes, which NCCL does where every NIC is behind the same PCIe "
          "switch as its GPU"),
      option("chunk_bytes", &Library::chunk_bytes,
             fmt::format("most that a transfer of {} carries; 0: no limit", pipelined_algorithms()),
             {0, static_cast<double>(std::int64_t{1} << 40)}, "bytes"),
  };
  return table;
}

const OptionTable<GroupAlgorithms>& group_algorithm_options() {
  static const OptionTable<GroupAlgorithms> table{
      group_algorithm(Kind::all_reduce, &GroupAlgorithms::all_reduce),
      group_algorithm(Kind::all_gather, &GroupAlgorithms::all_gather),
      group_algorithm(Kind::reduce_scatter, &GroupAlgorithms::reduce_scatter),
      group_algorithm(Kind::all_to_all, &GroupAlgorithms::all_to_all),
      group_algorithm(Kind::broadcast, &GroupAlgorithms::broadcast),
      group_algorithm(Kind::reduce, &GroupAlgorithms::reduce),
  };
  return table;
}

}  // namespace manyworlds::core::collective
