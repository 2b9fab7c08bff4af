#include "core/collective/library/calibrated_costs.hpp"

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/path_rates.hpp"
#include "core/collective/library/tuner.hpp"
#include "core/collective/transfers/mesh_orders.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr double kFullFill = 24 << 20;             // bytes at which half of the fill is paid
constexpr double kStoredBlock = 4'096;             // bytes that the threads of one channel store at once: 512 of 8 B
constexpr double kLongMessageBefore229 = 5e5;      // bytes from which an exchange is all Simple before 2.29
constexpr double kFirstMessageBefore229 = 32'768;  // bytes from which it is so in part,
constexpr double kFirstPartBefore229 = 0.3;        // this one
constexpr std::int64_t kWholeRate = 1'000'000;     // see ProtocolCosts

std::uint32_t ps_of_hop(double us) {
  const Time ps = round_half_up(std::max(us, 0.0) * kPsPerUs);
  MANYWORLDS_CHECK(ps <= std::numeric_limits<std::uint32_t>::max(), "a hop of {} us", us);
  return static_cast<std::uint32_t>(ps);
}

/// The constants of one protocol in rings and trees.
struct ProtocolConstants {
  double launch_us, hop_us, hop_between_us, tree_hop_between_us, copy_gb_per_s, wire_share;
};

/// The costs of one shape.
class CostModel {
 public:
  CostModel(const Calibration& calibration, LibraryVersion version, const Communicator& communicator,
            const Shape& shape, Algorithm chosen)
      : calibration_(calibration),
        version_(version),
        communicator_(communicator),
        shape_(shape),
        chosen_(chosen),
        bytes_(static_cast<double>(shape.bytes)),
        costs_(line_format_costs(shape.protocol)) {
    launch_us_ = calibration.older_launch_us_in(version);
  }

  ProtocolCosts costs() {
    const LatencyGroup group = info_of(chosen_).latency_group;
    if (group == LatencyGroup::token_exchange)
      add_dispatch();
    else if (shape_.kind == Kind::send || shape_.kind == Kind::all_to_all)
      add_exchange();
    else if (group == LatencyGroup::in_switch)
      add_in_switch();
    else if (group == LatencyGroup::tree && !in_a_node())
      add_tree();
    else
      add_ring();
    costs_.launch_ps = round_half_up(std::max(launch_us_, 0.0) * kPsPerUs);
    return costs_;
  }

 private:
  bool in_a_node() const { return shape_.per_node == shape_.members; }
  bool is_ll() const { return shape_.protocol == Protocol::calibrated_ll; }
  bool is_simple() const { return shape_.protocol == Protocol::calibrated_simple; }
  double wire_us() const { return latency_us(communicator_.intra_node); }
  /// The rate of a member's links in its node together, as far as the shape's channels use them.
  double links_gb_per_s() const {
    return gb_per_s(communicator_.intra_node) * shape_.channels / channels_per_link(shape_);
  }
  double wire_between_us() const { return latency_us(communicator_.inter_node); }
  static double fill(double us, double bytes) { return us * bytes / (bytes + kFullFill); }

  /// Sets the hops, of which the wire's latency is a part.
  void set_hops(double hop_us, double hop_between_us) {
    costs_.intra_node_ps = ps_of_hop(hop_us - wire_us());
    costs_.inter_node_ps = ps_of_hop(hop_between_us - wire_between_us());
  }

  /// Where the wire alone is slower than the hops that were measured, the launch makes up for it.
  void pay_back_wire(double hops, double hop_us) { launch_us_ += hops * std::min(0.0, hop_us - wire_us()); }

  /// Sets the share of the links' rates that transfers reach, inside nodes or between them.
  static void set_share(std::int64_t& rate_ppm, double share) {
    if (share > 0 && share < 1)
      rate_ppm = std::max<std::int64_t>(1, round_half_up(share * static_cast<double>(kWholeRate)));
  }

  ProtocolConstants constants() const {
    const Calibration& c = calibration_;
    if (is_ll())
      return {c.ll_launch_us, c.ll_hop_us, c.ll_hop_between_us, c.ll_tree_hop_between_us, c.ll_copy_gb_per_s, 1};
    if (is_simple()) return {c.launch_us, c.hop_us, c.hop_between_us, c.tree_hop_between_us, c.copy_gb_per_s, 1};
    return {c.ll128_launch_us,           c.ll128_hop_us,  c.ll128_hop_between_us,
            c.ll128_tree_hop_between_us, c.copy_gb_per_s, c.ll128_share};
  }

  /// Returns the bytes that a step moves: the whole vector in rooted operations, otherwise a block.
  double block() const {
    return shape_.kind == Kind::broadcast || shape_.kind == Kind::reduce ? bytes_ : bytes_ / shape_.members;
  }
  double steps() const { return static_cast<double>(ring_steps(shape_.kind, shape_.members)); }

  /// In a node blocks are copied, pipelines filled, and slices of a block overlap in the hop; between nodes a block is
  /// whole, and its latencies and its transfer add up.
  void add_ring() {
    const ProtocolConstants c = constants();
    launch_us_ += c.launch_us;
    double hop_us = c.hop_us;
    const double wire_block_us =
        us_at(static_cast<double>(costs_.line_bytes) / static_cast<double>(costs_.payload_bytes) * block(),
              links_gb_per_s() * c.wire_share);
    if (is_ll()) {
      const double stored = std::min(1.0, block() / kStoredBlock);
      launch_us_ += calibration_.ll_store_launch_us * stored;
      hop_us += std::max(0.0, calibration_.ll_store_us * stored - (in_a_node() ? wire_block_us : 0));
    } else if (in_a_node() && chosen_ == Algorithm::ring) {
      hop_us = pipeline(steps(), c.hop_us, wire_block_us) / steps() - wire_block_us;
    }
    set_share(costs_.intra_node_rate_ppm, c.wire_share);
    if (in_a_node()) add_ends(c);
    if (is_ll()) limit_ll_between();
    set_ring_hops(hop_us, c.hop_between_us);
    if (in_a_node()) pay_back_wire(steps(), hop_us);
  }

  /// A block passes all members of a node between two hops of the two-level algorithm, where that stands for a ring.
  /// Rings with one block in flight take the mean of both hops for each, because NCCL's next block is on its way by
  /// then.
  void set_ring_hops(double hop_us, double hop_between_us) {
    if (shape_.algorithm != chosen_) return set_hops(hop_us, hop_between_us + (shape_.per_node - 1) * hop_us);
    if (chosen_ != Algorithm::ring || in_a_node() || is_ll()) return set_hops(hop_us, hop_between_us);
    const auto between = static_cast<double>(ring_steps(shape_.kind, shape_.members / shape_.per_node));
    const double mean_us = ((steps() - between) * hop_us + between * hop_between_us) / steps();
    set_hops(mean_us, mean_us);
  }

  /// Adds what a member copies and what filling the channels takes.
  void add_ends(const ProtocolConstants& c) {
    launch_us_ += us_at(block(), c.copy_gb_per_s);
    if (!is_simple()) return;
    const double share = shape_.kind == Kind::reduce_scatter ? calibration_.fill_reduce_scatter_share : 1;
    launch_us_ += share * fill(calibration_.fill_us, bytes_);
  }

  /// The CPU hands LL's data to the NICs, at a rate of its own.
  void limit_ll_between() {
    const std::uint32_t nodes = shape_.members / shape_.per_node;
    const double of_nics = shape_.per_node * gb_per_s(communicator_.inter_node);
    if (nodes > 1 && of_nics > 0) set_share(costs_.inter_node_rate_ppm, 2 * ll_gb_per_s_between(nodes) / of_nics);
  }

  /// A tree's chunks follow each other, so that their latencies count once per level. LL stores the whole vector.
  /// NCCL's latency of Simple contains a chunk; a longer one takes what LL128's latency and its own transfer do.
  void add_tree() {
    const ProtocolConstants c = constants();
    launch_us_ += c.launch_us;
    double hop_between_us = c.tree_hop_between_us;
    if (is_simple()) {
      const double chunk_us = us_at(static_cast<double>(shape_.chunk_bytes),
                                    gb_per_s(communicator_.inter_node) * calibration_.tree_nic_share);
      hop_between_us = std::max(hop_between_us - chunk_us, calibration_.ll128_tree_hop_between_us);
    }
    set_share(costs_.intra_node_rate_ppm, c.wire_share);
    if (is_ll()) limit_ll_between(), launch_us_ += us_at(bytes_, c.copy_gb_per_s);
    if (costs_.inter_node_rate_ppm == kWholeRate) set_share(costs_.inter_node_rate_ppm, calibration_.tree_nic_share);
    set_hops(c.hop_us, hop_between_us);
    pay_back_wire(2.0 * (shape_.per_node - 1), c.hop_us);
  }

  /// Messages to all members are on their way at once, so that the wire's latency counts once and not in each round.
  void add_exchange() {
    const Calibration& c = calibration_;
    const bool send = shape_.kind == Kind::send;
    const double message = send ? bytes_ : bytes_ / shape_.members;
    const std::uint32_t members = send ? 2 : shape_.members;
    launch_us_ += c.exchange_launch_us + c.exchange_launch_per_log2_us * log2_of(members);
    launch_us_ += c.exchange_simple_us * simple_part(message) + us_at(message, c.exchange_copy_gb_per_s);
    launch_us_ += fill(c.exchange_fill_us, message * members);
    const bool at_once = shape_.node_mesh && in_a_node();
    launch_us_ -= wire_us() * (at_once ? 1 : (in_a_node() ? members : shape_.per_node) - 1);
    if (c.link_share > 0) set_share(costs_.intra_node_rate_ppm, c.exchange_link_share / c.link_share);
    set_hops(0, c.ll_hop_between_us);
  }

  /// Returns the part of an exchange's additional time for Simple that a message of so many bytes pays.
  double simple_part(double message) const {
    if (version_ < LibraryVersion::v2_29)
      return kFirstPartBefore229 * std::min(1.0, message / kFirstMessageBefore229) +
             (1 - kFirstPartBefore229) * std::min(1.0, message / kLongMessageBefore229);
    const double long_message = calibration_.exchange_simple_kib * 1'024;
    return long_message > 0 ? std::min(1.0, message / long_message) : 1;
  }

  void add_in_switch() {
    const Calibration& c = calibration_;
    if (!c.reduces_in_switches())
      throw InputError(
          fmt::format("{} is not calibrated on this GPU (library_in_switch_copy_gb_per_s is 0); take another "
                      "algorithm, or give the figure",
                      info_of(shape_.algorithm).name));
    // Operations that only reduce or gather pass the switch once.
    const double passes = shape_.kind == Kind::all_reduce ? 1 : 0.5;
    const std::int64_t round = in_switch_chunk(c.architecture, shape_.members, shape_.bytes) *
                               in_switch_channels(c.architecture) * shape_.members;
    const double rounds = bytes_ / static_cast<double>(round);
    launch_us_ += c.in_switch_launch_us + fill(c.in_switch_fill_us, bytes_) +
                  passes * (us_at(bytes_, c.in_switch_copy_gb_per_s) + rounds * c.in_switch_round_us);
    launch_us_ -= 2 * passes * wire_us() + drain_us();
  }

  /// Returns what the last chunk of a reduction in switches adds to the bytes on a link: it goes down when all have
  /// come up. NCCL's chunks are so short that it adds nothing there.
  double drain_us() const {
    return us_at(static_cast<double>(shape_.chunk_bytes) * (shape_.members - 1), gb_per_s(communicator_.intra_node));
  }

  /// Tokens are sent at once, without latency per step. With several nodes, NICs are slower than the copies at the
  /// endpoints, so these are not counted.
  void add_dispatch() {
    launch_us_ += calibration_.dispatch_launch_us;
    if (in_a_node()) launch_us_ += us_at(bytes_ - bytes_ / shape_.members, calibration_.dispatch_copy_gb_per_s);
  }

  const Calibration& calibration_;
  LibraryVersion version_;
  const Communicator& communicator_;
  const Shape& shape_;
  Algorithm chosen_;
  double bytes_, launch_us_ = 0;
  ProtocolCosts costs_;
};

}  // namespace

std::int64_t in_switch_chunk(Architecture architecture, std::int64_t members, std::int64_t bytes) {
  constexpr std::int64_t kKib = 1 << 10;
  const std::int64_t channels = in_switch_channels(architecture) * members;
  if (bytes < 2 * channels * 32 * kKib) return 16 * kKib;
  if (bytes < 8 * channels * 64 * kKib) return 32 * kKib;
  return bytes < 64 * channels * 128 * kKib ? 64 * kKib : 128 * kKib;
}

ProtocolCosts calibrated_costs(const Calibration& calibration, LibraryVersion version, const Communicator& communicator,
                               const Shape& shape, Algorithm chosen) {
  if (calibration.copy_gb_per_s <= 0 || calibration.ll_copy_gb_per_s <= 0)
    throw InputError("protocol: calibrated needs the library_ figures of the GPU, of which some are 0");
  return CostModel(calibration, version, communicator, shape, chosen).costs();
}

}  // namespace manyworlds::core::collective
