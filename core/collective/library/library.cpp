#include "core/collective/library/library.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/dag/protocol.hpp"
#include "core/collective/library/calibrated_costs.hpp"
#include "core/collective/library/tuner.hpp"
#include "core/collective/transfers/mesh_orders.hpp"

namespace manyworlds::core::collective {
namespace {

/// Returns the bytes of an even operation in which every member has as many bytes as the busiest one has here.
std::int64_t bytes_of_busiest(const Shape& shape) {
  if (shape.split.even() || shape.kind != Kind::all_to_all) return shape.bytes;
  return shape.members * *std::max_element(shape.split.bytes.begin(), shape.split.bytes.end());
}

CostTerms cost_terms_of(const Shape& shape) {
  const std::int64_t nodes = shape.members / shape.per_node, passes = shape.kind == Kind::all_reduce ? 2 : 1;
  const CollectiveSizes sizes{shape.members, shape.per_node, nodes, bytes_of_busiest(shape), shape.channels, passes};
  if (shape.kind != Kind::send) return info_of(shape.algorithm).cost(shape, sizes);
  CostTerms terms = shape.per_node > 1 ? CostTerms{1, 0, shape.bytes, 0} : CostTerms{0, 1, 0, shape.bytes};
  terms.two_in_flight = shape.chunk_bytes > 0;
  return terms;
}

Time path_time(const Path& path, Time step_ps, std::int64_t steps, std::int64_t wire_bytes) {
  const Time sent = wire_bytes > 0 ? serialization_ps(wire_bytes, path.bits_per_second) : 0;
  return steps * (path.latency_ps + step_ps) + sent;
}

bool has_switches(const Communicator& communicator) {
  return communicator.per_node > 1 ? communicator.node_switches : communicator.rail_switches;
}

bool reduces_in_switches(Algorithm algorithm) {
  return info_of(algorithm).latency_group == LatencyGroup::in_switch;
}

/// Returns whether `automatic` considers an algorithm; a calibrated library only does if it is calibrated.
bool is_candidate(const AlgorithmInfo& info, Kind kind, const Library& library, const Communicator& communicator) {
  if (library.protocol != Protocol::calibrated) return info.considered(kind, communicator);
  if (reduces_in_switches(info.algorithm) && !library.calibration.reduces_in_switches()) return false;
  return info.considered_if_calibrated(kind, communicator);
}

/// Returns the shape with every parameter that does not affect its DAG set to its default.
Shape canonical(Shape shape) {
  if (shape.per_node == shape.members) shape.queue_pairs = 1;
  if (shape.queue_pairs == 1) shape.message_bytes = 0;
  const std::vector<std::int64_t>& split = shape.split.bytes;
  const bool is_all_to_all = shape.kind == Kind::all_to_all;
  if (is_all_to_all && std::adjacent_find(split.begin(), split.end(), std::not_equal_to<>()) == split.end())
    shape.split = {};
  if (!is_all_to_all && shape.root() == 0) shape.split = {};
  if (shape.kind == Kind::send) {
    shape.node_mesh = false;
    if (shape.protocol == Protocol::none && shape.queue_pairs == 1) shape.per_node = 1;
    shape.channels = 1;
    shape.chunk_bytes = 0;
    return shape;
  }
  const AlgorithmInfo& configured = info_of(shape.algorithm);
  if (!configured.pipelined) shape.chunk_bytes = 0;
  if (!configured.multi_channel) shape.channels = 1;
  if (configured.simplified != nullptr) shape.algorithm = configured.simplified(shape);
  const auto uses_mesh = info_of(shape.algorithm).uses_mesh;
  shape.node_mesh = shape.node_mesh && uses_mesh != nullptr && uses_mesh(shape);
  const auto ignores_nodes = info_of(shape.algorithm).ignores_nodes;
  const bool depends_on_nodes = shape.node_mesh || ignores_nodes == nullptr || !ignores_nodes(shape);
  if (shape.protocol == Protocol::none && shape.queue_pairs == 1 && !depends_on_nodes) shape.per_node = 1;
  return shape;
}

std::vector<Algorithm> supporting_algorithms(Kind kind) {
  std::vector<Algorithm> all;
  for (const AlgorithmInfo& info : algorithms())
    if (supports(info.algorithm, kind)) all.push_back(info.algorithm);
  return all;
}

}  // namespace

bool Library::depends_on_network() const {
  const auto needs_network = [](Algorithm configured) {
    if (configured == Algorithm::as_all_reduce) return false;
    return configured == Algorithm::automatic || reduces_in_switches(configured);
  };
  const auto is_line = [](const TunerRule& rule) { return !rule.given; };
  return channels == 0 || protocol == Protocol::automatic || protocol == Protocol::calibrated ||
         std::any_of(tuner_rules.begin(), tuner_rules.end(), is_line) || needs_network(all_reduce) ||
         needs_network(all_gather) || needs_network(reduce_scatter) || needs_network(all_to_all) ||
         needs_network(broadcast) || needs_network(reduce);
}

Library with_algorithms(Library library, const GroupAlgorithms& algorithms) {
  const auto take = [](Algorithm& to, const std::optional<Algorithm>& algorithm) { to = algorithm.value_or(to); };
  take(library.all_reduce, algorithms.all_reduce);
  take(library.all_gather, algorithms.all_gather);
  take(library.reduce_scatter, algorithms.reduce_scatter);
  take(library.all_to_all, algorithms.all_to_all);
  take(library.broadcast, algorithms.broadcast);
  take(library.reduce, algorithms.reduce);
  return library;
}

std::vector<Algorithm> Library::candidates(Kind kind) const {
  Algorithm configured = Algorithm::ring;
  if (kind == Kind::all_reduce) configured = all_reduce;
  if (kind == Kind::all_gather) configured = all_gather;
  if (kind == Kind::reduce_scatter) configured = reduce_scatter;
  if (kind == Kind::all_to_all) configured = all_to_all;
  if (kind == Kind::broadcast) configured = broadcast;
  if (kind == Kind::reduce) configured = reduce;
  if (configured == Algorithm::as_all_reduce)
    configured = all_reduce == Algorithm::automatic || supports(all_reduce, kind) ? all_reduce : Algorithm::ring;
  return configured == Algorithm::automatic ? supporting_algorithms(kind) : std::vector{configured};
}

Time predicted_ps(const Shape& shape, const Communicator& communicator) {
  const ProtocolCosts costs = costs_of(shape);
  const CostTerms terms = cost_terms_of(shape);
  if (terms.two_in_flight && terms.inter_node_steps > 0) {
    // Latencies and transmission overlap partly: half of the smaller term is hidden, by comparison with simulated rings
    // of 16 and 64 members.
    const Time latencies = path_time(communicator.intra_node, costs.intra_node_ps, terms.intra_node_steps, 0) +
                           path_time(communicator.inter_node, costs.inter_node_ps, terms.inter_node_steps, 0);
    const Time sent = path_time(communicator.inter_node, 0, 0, costs.wire_bytes(terms.inter_node_bytes, true));
    return costs.launch_ps + std::max(latencies, sent) + std::min(latencies, sent) / 2;
  }
  return costs.launch_ps +
         path_time(communicator.intra_node, costs.intra_node_ps, terms.intra_node_steps,
                   costs.wire_bytes(terms.intra_node_bytes)) +
         path_time(communicator.inter_node, costs.inter_node_ps, terms.inter_node_steps,
                   costs.wire_bytes(terms.inter_node_bytes, true));
}

namespace {

/// How the transfers of a member follow one another, if the cost formula of the algorithm counts their steps and bytes.
enum class Counted : std::uint8_t {
  no,
  beside,      // on both kinds of paths at the same time, in steps that take the latencies of both
  in_turn,     // one after the other
  two_queues,  // one after the other on each kind of paths, the two kinds at the same time
};

Counted counted(const Shape& shape) {
  if (!shape.split.even()) return Counted::no;
  if (shape.kind == Kind::send || shape.algorithm == Algorithm::ring || shape.algorithm == Algorithm::two_level)
    return Counted::beside;
  if (shape.algorithm == Algorithm::pairwise) return Counted::in_turn;
  return shape.algorithm == Algorithm::hybrid_ep && !shape.at_once ? Counted::two_queues : Counted::no;
}

}  // namespace

Time least_ps(const Shape& shape, const Communicator& communicator) {
  const ProtocolCosts costs = costs_of(shape);
  const Counted how = counted(shape);
  if (how == Counted::no) return costs.launch_ps;
  CostTerms terms = cost_terms_of(shape);
  terms.inter_node_bytes /= shape.queue_pairs;  // which may leave by as many cables
  if (how != Counted::beside) {
    const Time inside = path_time(communicator.intra_node, costs.intra_node_ps, terms.intra_node_steps,
                                  costs.wire_bytes(terms.intra_node_bytes));
    const Time between = path_time(communicator.inter_node, costs.inter_node_ps, terms.inter_node_steps,
                                   costs.wire_bytes(terms.inter_node_bytes, true));
    return costs.launch_ps + (how == Counted::in_turn ? inside + between : std::max(inside, between));
  }
  // Under analytic fidelity transfers of several channels, or two in flight, do not wait for each other on a link.
  const std::int64_t in_flight = terms.two_in_flight ? 2 : 1, at_once = shape.channels * in_flight;
  const std::int64_t on_link =
      (shape.algorithm == Algorithm::ring ? channels_per_link(shape) : shape.channels) * in_flight;
  const std::int64_t nics = shape.algorithm == Algorithm::ring ? std::min(shape.channels, shape.per_node) : 1;
  const Time intra_node = path_time(communicator.intra_node, 0, 0, costs.wire_bytes(terms.intra_node_bytes / on_link));
  const Time inter_node =
      path_time(communicator.inter_node, 0, 0, costs.wire_bytes(terms.inter_node_bytes * nics / at_once, true));
  const Time latencies = path_time(communicator.intra_node, costs.intra_node_ps, terms.intra_node_steps, 0) +
                         path_time(communicator.inter_node, costs.inter_node_ps, terms.inter_node_steps, 0);
  if (terms.two_in_flight) return costs.launch_ps + std::max({latencies, intra_node, inter_node});
  return costs.launch_ps + latencies + std::max(intra_node, inter_node);
}

namespace {

/// Returns the protocols that a calibrated library has for an algorithm; see LatencyGroup.
std::vector<Protocol> calibrated_protocols(Kind kind, Algorithm algorithm) {
  const LatencyGroup group = info_of(algorithm).latency_group;
  const bool flags = group == LatencyGroup::ring || group == LatencyGroup::tree;
  if (!flags || kind == Kind::send || kind == Kind::all_to_all) return {Protocol::calibrated_simple};
  return {Protocol::calibrated_ll, Protocol::calibrated_ll128, Protocol::calibrated_simple};
}

std::vector<Protocol> protocols_of(const Library& library, Kind kind, Algorithm algorithm) {
  if (library.protocol == Protocol::automatic) return {Protocol::ll, Protocol::ll128, Protocol::simple};
  if (library.protocol == Protocol::calibrated) return calibrated_protocols(kind, algorithm);
  return {library.protocol};
}

/// Returns a rule's protocol as it is called in shapes of the library. Given algorithms run without any costs, too.
Protocol protocol_of(const TunerRule& rule, const Library& library) {
  if (library.protocol == Protocol::none) return Protocol::none;
  if (library.protocol != Protocol::calibrated) return rule.protocol;
  if (rule.protocol == Protocol::ll) return Protocol::calibrated_ll;
  return rule.protocol == Protocol::ll128 ? Protocol::calibrated_ll128 : Protocol::calibrated_simple;
}

/// Applies the library's channels and chunks, and the costs that a calibrated library adds. Channels may be those of a
/// rule.
void apply_library(Shape& shape, const Library& library, const Communicator& communicator, bool has_channels) {
  const Algorithm chosen = shape.algorithm;
  if (const auto use_every_nic = info_of(chosen).use_every_nic; !has_channels && use_every_nic != nullptr)
    use_every_nic(shape);
  if (library.protocol != Protocol::calibrated) return;
  if (const auto calibrate = info_of(shape.algorithm).calibrate; calibrate != nullptr) calibrate(shape);
  shape.calibrated = calibrated_costs(library.calibration, library.version, communicator, shape, chosen);
}

TunerInput tuner_input(const Library& library, const Communicator& communicator) {
  const auto line_rate = [](const Path& path, double share) {
    return share > 0 ? static_cast<double>(path.bits_per_second) / 8e9 / share : 0;
  };
  return {library.calibration.architecture, library.version,
          links_of_member(communicator) *
              line_rate(communicator.intra_node, library.calibration.link_share_in(library.version)),
          line_rate(communicator.inter_node, library.calibration.nic_share), library.ll128_between_nodes};
}

/// Returns the time by which a shape is preferred to others: the tuner's in a calibrated library.
double rank_of(const Library& library, const Communicator& communicator, const Shape& shape, Algorithm chosen) {
  if (library.protocol == Protocol::calibrated && shape.kind != Kind::all_to_all)
    return tuner_us(tuner_input(library, communicator), shape.kind, chosen, shape.protocol, shape.members,
                    shape.per_node, shape.bytes);
  return static_cast<double>(predicted_ps(shape, communicator));
}

bool has_it(const Library& library, const Communicator& communicator, const TunerRule& rule, std::int64_t bytes) {
  const bool in_switch = reduces_in_switches(rule.algorithm);
  if (in_switch && (communicator.members > communicator.per_node || !communicator.node_switches ||
                    rule.protocol != Protocol::simple))
    return false;
  if (library.protocol != Protocol::calibrated || rule.given) return true;
  if (in_switch && !library.calibration.reduces_in_switches()) return false;
  return tuner_us(tuner_input(library, communicator), rule.kind, rule.algorithm, protocol_of(rule, library),
                  communicator.members, communicator.per_node, bytes) < std::numeric_limits<double>::infinity();
}

}  // namespace

const TunerRule* rule_for(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes) {
  if (communicator.members < 2) return nullptr;
  for (const TunerRule& rule : library.tuner_rules)
    if (rule.matches(communicator, kind, bytes) && has_it(library, communicator, rule, bytes)) return &rule;
  return nullptr;
}

Shape choose_shape(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes,
                   const Split& split) {
  const TunerRule* rule = rule_for(library, communicator, kind, bytes);
  if (rule != nullptr && rule->given && !split.even()) rule = nullptr;  // its chunks are equal
  const bool heeds_channels = rule != nullptr && rule->channels > 0 && library.protocol != Protocol::calibrated;
  const std::int64_t channels = heeds_channels ? rule->channels : library.channels;
  Shape base;
  base.kind = kind;
  base.members = communicator.members;
  base.per_node = communicator.per_node;
  base.bytes = bytes;
  base.channels = static_cast<std::uint32_t>(std::max<std::int64_t>(channels, 1));
  base.node_mesh = communicator.node_mesh && (channels == 0 || library.protocol == Protocol::calibrated);
  base.chunk_bytes = library.chunk_bytes;
  base.queue_pairs = static_cast<std::uint32_t>(library.qps_per_connection);
  base.message_bytes = library.split_data_on_qps ? 0 : library.message_bytes;
  base.split = split;
  if (rule != nullptr) base.given = rule->given;
  const std::vector<Algorithm> algorithms = kind == Kind::send ? std::vector{Algorithm::ring}
                                            : rule != nullptr  ? std::vector{rule->algorithm}
                                                               : library.candidates(kind);
  std::optional<double> least;
  Shape best = base;
  for (const Algorithm algorithm : algorithms) {
    const bool configured = algorithms.size() == 1;
    if (!configured && !is_candidate(info_of(algorithm), kind, library, communicator)) continue;
    const Algorithm chosen =
        reduces_in_switches(algorithm) && !has_switches(communicator) ? Algorithm::ring : algorithm;
    const std::vector<Protocol> protocols =
        rule != nullptr ? std::vector{protocol_of(*rule, library)} : protocols_of(library, kind, chosen);
    for (const Protocol protocol : protocols) {
      Shape shape = base;
      shape.algorithm = chosen;
      shape.rail_switches = reduces_in_switches(chosen) && configured && communicator.rail_switches;
      shape.protocol = protocol;
      apply_library(shape, library, communicator, channels > 0);
      const bool only_choice = configured && protocols.size() == 1;
      const double rank = only_choice || communicator.members < 2 ? 0 : rank_of(library, communicator, shape, chosen);
      if (!least || rank < *least) least = rank, best = shape;
    }
  }
  return canonical(best);
}

}  // namespace manyworlds::core::collective
