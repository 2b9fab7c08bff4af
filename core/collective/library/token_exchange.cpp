#include "core/collective/library/token_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.hpp"
#include "core/collective/library/path_rates.hpp"
#include "core/collective/transfers/token_chunks.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr double kWholeRatePpm = 1e6;  // see ProtocolCosts
// Share of an exchange's time by which rounds may be too slow: many transfers at once take longer to simulate.
constexpr double kTolerance = 0.05;

/// Returns the cube root of a number from 1 to 2 by Newton's method, with the same bits on every machine.
double cube_root(double x) {
  double root = 1 + (x - 1) / 3;
  for (int i = 0; i < 6; ++i) root = (2 * root + x / (root * root)) / 3;
  return root;
}

/// Returns (a^6 + b^6)^(1/6): the longer of two times hides the shorter one, but for where they are nearly as long.
double longer_of(double a, double b) {
  const double most = std::max(a, b), least = std::min(a, b);
  if (most <= 0) return 0;
  const double cubed = least / most * (least / most) * (least / most);
  return most * std::sqrt(cube_root(1 + cubed * cubed));
}

/// Returns the set of figures inside a node or between nodes; nothing if these kernels do not go there.
std::optional<TokenSet> set_of(TokenKernels kernels, bool between) {
  if (kernels == TokenKernels::deepep) return between ? TokenSet::deepep_between : TokenSet::deepep;
  if (kernels == TokenKernels::low_latency) return between ? TokenSet::low_latency_between : TokenSet::low_latency;
  if (between) return std::nullopt;
  return kernels == TokenKernels::trtllm_two_sided ? TokenSet::trtllm_two_sided : TokenSet::trtllm_one_sided;
}

const TokenFigures& figures_of(const Calibration& calibration, TokenKernels kernels, bool between, bool combine) {
  const auto set = set_of(kernels, between);
  if (!set)
    throw InputError(fmt::format("TensorRT-LLM's exchange of tokens is measured inside a scale-up domain only"));
  const auto index = static_cast<std::size_t>(*set);
  const TokenFigures& figures = combine ? calibration.tokens.at(index).combine : calibration.tokens.at(index).dispatch;
  if (figures.launch_us <= 0)
    throw InputError(
        fmt::format("the exchange of tokens by {} is not calibrated on this GPU ({} is 0); give its figures",
                    token_sets().at(index).help,
                    figure_name(token_sets().at(index), combine, token_sets().at(index).figures.front())));
  return figures;
}

/// The costs of one exchange.
class TokenCosts {
 public:
  TokenCosts(const Calibration& calibration, const Communicator& communicator, const Shape& shape,
             const TokenExchange& tokens)
      : communicator_(communicator),
        tokens_(tokens),
        per_node_(shape.per_node),
        nodes_(shape.members / shape.per_node),
        to_rank_(static_cast<double>(shape.bytes) / shape.members),
        to_node_(shape.node_bytes > 0 ? static_cast<double>(shape.node_bytes) : to_rank_ * per_node_),
        figures_(figures_of(calibration, tokens.kernels, nodes_ > 1, tokens.combine)) {
    const double reached = figures_of(calibration, tokens.kernels, false, tokens.combine).wire_gb_per_s;
    link_gb_per_s_ = links_of_member(communicator) * gb_per_s(communicator.intra_node);
    if (reached > 0 && reached < link_gb_per_s_) link_share_ = reached / link_gb_per_s_, link_gb_per_s_ = reached;
  }

  /// Sets the costs, and whether transfers start at once: where rounds that wait for each other would take longer than
  /// the exchange does.
  void apply_to(Shape& shape) const {
    shape.calibrated = line_format_costs(Protocol::calibrated_simple);
    shape.at_once = rounds_us() > (1 + kTolerance) * alone_us();
    const double before_us = alone_us() - (shape.at_once ? at_once_us() : rounds_us());
    shape.calibrated.launch_ps = round_half_up(std::max(before_us, 0.0) * kPsPerUs);
    shape.calibrated.intra_node_rate_ppm = std::max<std::int64_t>(1, round_half_up(link_share_ * kWholeRatePpm));
  }

 private:
  /// The time of the rows on a GPU's links, and on its NIC.
  double on_links_us() const { return us_at(nodes_ * (per_node_ - 1.0) * to_rank_, link_gb_per_s_); }
  double on_nic_us() const { return us_at((nodes_ - 1.0) * to_node_, gb_per_s(communicator_.inter_node)); }

  /// What compute units take for all tokens of a member. Between nodes a token's destinations are nodes.
  double work_us() const {
    const double destinations = nodes_ > 1 ? tokens_.nodes_reached : tokens_.ranks_reached;
    const auto row = static_cast<double>(tokens_.row_bytes);
    const double each_us = destinations * (figures_.destination_ns * 1e-3 + us_at(row, figures_.destination_gb_per_s)) +
                           us_at(row, figures_.token_gb_per_s);
    return tokens_.tokens() / tokens_.units * each_us;
  }

  /// The time of an exchange that is alone on the network.
  double alone_us() const {
    return figures_.launch_us + figures_.launch_per_log2_us * tokens_.doublings(nodes_ * per_node_, nodes_) +
           us_at(static_cast<double>(tokens_.row_bytes), figures_.row_gb_per_s) +
           longer_of(work_us(), std::max(on_links_us(), on_nic_us()));
  }

  /// What arrives last from another node and is forwarded then.
  double last_us() const { return us_at((per_node_ - 1.0) * to_rank_ / token_chunks(nodes_), link_gb_per_s_); }

  /// The time of the transfers of hybrid_ep on a network that is otherwise idle, in rounds that wait for each other: on
  /// the rails and inside nodes at the same time, and what arrives last is forwarded.
  double rounds_us() const {
    const double rounds = communicator_.node_mesh ? 1 : per_node_ - 1.0;  // on a mesh all members are sent to at once
    const double round_us = rounds * latency_us(communicator_.intra_node);
    if (nodes_ == 1) return round_us + on_links_us();
    const double chunks = token_chunks(nodes_) * (nodes_ - 1.0);
    const double rails_us = on_nic_us() + chunks * latency_us(communicator_.inter_node) + round_us + last_us();
    const double inside_us = on_links_us() + (chunks + 1) * round_us;
    return std::max(rails_us, inside_us);
  }

  /// The same if all start at once, but for chunks to the same node.
  double at_once_us() const {
    if (nodes_ == 1) return latency_us(communicator_.intra_node) + on_links_us();
    return std::max(on_nic_us(), on_links_us()) + token_chunks(nodes_) * latency_us(communicator_.inter_node) +
           latency_us(communicator_.intra_node) + last_us();
  }

  const Communicator& communicator_;
  const TokenExchange& tokens_;
  std::uint32_t per_node_, nodes_;
  double to_rank_, to_node_;  // bytes from a member to each rank, and to each node
  const TokenFigures& figures_;
  double link_gb_per_s_ = 0, link_share_ = 1;
};

}  // namespace

std::vector<TokenSet> token_sets_of(TokenKernels kernels, bool between) {
  std::vector<TokenSet> sets;
  if (kernels == TokenKernels::hybrid_ep) return sets;
  for (const bool of_nodes : {false, true})
    if (const auto set = set_of(kernels, of_nodes); set && (between || !of_nodes)) sets.push_back(*set);
  return sets;
}

const std::vector<std::string>& token_kernel_names() {
  static const std::vector<std::string> names{"hybrid_ep", "deepep", "low_latency", "trtllm_two_sided",
                                              "trtllm_one_sided"};
  return names;
}

double TokenExchange::tokens() const {
  return static_cast<double>(bytes) / (static_cast<double>(row_bytes) * ranks_reached);
}

double TokenExchange::doublings(std::uint32_t members, std::uint32_t nodes) const {
  if (nodes > 1) return log2_of(nodes);
  return log2_of(kernels == TokenKernels::low_latency ? std::max(1.0, experts_of_rank) : members);
}

Shape token_exchange_shape(Library library, const Communicator& communicator, const TokenExchange& tokens) {
  library.all_to_all = Algorithm::hybrid_ep;
  library.qps_per_connection = 1;  // these kernels send with connections of their own
  Shape shape = choose_shape(library, communicator, Kind::all_to_all, tokens.bytes);
  if (shape.members < 2) return shape;
  const std::int64_t members = shape.members, nodes = members / shape.per_node, own_bytes = tokens.bytes / members;
  const bool low_latency = tokens.kernels == TokenKernels::low_latency;  // a row for each expert, also over nodes
  if (nodes > 1 && shape.per_node > 1 && !low_latency) {
    const double growth =
        tokens.nodes_reached / static_cast<double>(nodes) / (tokens.ranks_reached / static_cast<double>(members));
    shape.node_bytes = round_half_up(static_cast<double>(own_bytes) * growth);
  }
  if (library.protocol == Protocol::calibrated && tokens.kernels != TokenKernels::hybrid_ep)
    TokenCosts(library.calibration, communicator, shape, tokens).apply_to(shape);
  return shape;
}

}  // namespace manyworlds::core::collective
