#include "experiments/astra_sim/collectives/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using core::InputError;
using core::collective::Kind;

constexpr std::int64_t kGroupEndpointNs = 10;
constexpr std::size_t kMaxDimensions = 4;  // of those that ASTRA-sim takes a collective to involve

const char* key_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all-reduce-implementation";
    case Kind::all_gather:
      return "all-gather-implementation";
    case Kind::reduce_scatter:
      return "reduce-scatter-implementation";
    default:
      return "all-to-all-implementation";
  }
}

/// Makes the phase of one dimension, or of one group.
class PhaseMaker {
 public:
  PhaseMaker(const System& system, Kind kind, std::int64_t bytes, std::vector<std::uint32_t> members, bool is_group)
      : system_(system), kind_(kind), bytes_(bytes), is_group_(is_group) {
    phase_.members = std::move(members);
    n_ = static_cast<std::int64_t>(phase_.members.size());
    endpoint_ = is_group ? kGroupEndpointNs : system.endpoint_delay_ns;
    phase_.before_ns = endpoint_;
  }

  Phase make(const Algorithm& algorithm, const char* key) {
    switch (algorithm.kind) {
      case AlgorithmKind::ring:
        ring();
        break;
      case AlgorithmKind::direct:
        if (algorithm.window && *algorithm.window < n_ - 1)
          fail(key, algorithm, fmt::format("with a window below the {} messages of a rank is not modelled", n_ - 1));
        direct();
        break;
      case AlgorithmKind::halving_doubling:
        if (kind_ == Kind::all_to_all) fail(key, algorithm, "has no all-to-all in ASTRA-sim");
        if (!std::has_single_bit(static_cast<std::uint64_t>(n_)))
          fail(key, algorithm, fmt::format("is modelled for powers of two, not for {} ranks", n_));
        halving_doubling();
        break;
      case AlgorithmKind::double_binary_tree:
        if (is_group_) fail(key, algorithm, "has no tree for a group of some ranks: ASTRA-sim itself stops");
        if (!std::has_single_bit(static_cast<std::uint64_t>(n_)))
          fail(key, algorithm, fmt::format("is of powers of two, not of {} ranks: ASTRA-sim itself stops", n_));
        phase_.tree = Tree{bytes_, endpoint_, reduction(bytes_)};
    }
    for (const Round& round : phase_.rounds)
      for (const Message& message : round.messages)
        if (message.bytes < 1)
          throw InputError(fmt::format("preferred-dataset-splits: must leave a byte for each message of {} ranks", n_),
                           system_.name);
    return std::move(phase_);
  }

 private:
  [[noreturn]] void fail(const char* key, const Algorithm& algorithm, const std::string& why) const {
    throw InputError(fmt::format("{}: {} {}", key, algorithm.name, why), system_.name);
  }

  /// Two reads and a write, each rounded down.
  std::int64_t reduction(std::int64_t bytes) const {
    if (system_.memory_gb_per_s <= 0)
      throw InputError("local-mem-bw: must be there, in GB/s, where ranks reduce what they receive", system_.name);
    const double ns = static_cast<double>(bytes) / (system_.memory_gb_per_s * 1e9) * 1e9;
    if (!(ns < kLongestNs))
      throw InputError(fmt::format("local-mem-bw: must be such that {} bytes take less than 10^15 ns", bytes),
                       system_.name);
    return 3 * static_cast<std::int64_t>(ns);
  }

  /// Every round sends on to the next member what came in the one before. An all-to-all walks all distances.
  void ring() {
    const std::int64_t message = kind_ == Kind::all_gather ? bytes_ : bytes_ / n_;
    const auto add = [&](std::int64_t times, bool reduces) {
      phase_.rounds.push_back({{{message}}, endpoint_ + (reduces ? reduction(message) : 0), times});
    };
    if (kind_ == Kind::all_to_all) return add(n_ * (n_ - 1) / 2, false);
    add(n_ - 1, kind_ != Kind::all_gather);
    if (kind_ == Kind::all_reduce) add(n_ - 1, false);
  }

  /// Every member sends to all others at once; an all-reduce does so twice, and in a group of three or more reduces
  /// what comes the second time too, as AllToAll.cc does.
  void direct() {
    const std::int64_t message = kind_ == Kind::all_gather ? bytes_ : bytes_ / n_;
    const bool reduces = kind_ == Kind::all_reduce || kind_ == Kind::reduce_scatter;
    const auto add = [&](bool with_reduction) {
      Round round;
      for (std::uint32_t distance = 1; distance < static_cast<std::uint32_t>(n_); ++distance)
        round.messages.push_back({message, distance});
      round.after_ns = endpoint_ + (with_reduction ? reduction(message) : 0);
      phase_.rounds.push_back(std::move(round));
    };
    add(reduces);
    if (kind_ != Kind::all_reduce) return;
    add(is_group_ && n_ > 2);
    phase_.needs_equal_messages = true;
  }

  /// Members exchange halves with ever farther ones, and gather in the opposite order. HalvingDoubling.cc counts no
  /// reduction behind the last halving, and that of the message which it sends next behind the others; it rounds the
  /// halves down once more before it doubles them.
  void halving_doubling() {
    const int steps = std::countr_zero(static_cast<std::uint64_t>(n_));
    std::vector<Message> messages;
    for (int step = 0; step < steps && kind_ != Kind::all_gather; ++step)
      messages.push_back({bytes_ >> (step + 1), 1u << step, true});
    for (int step = steps - 1; step >= 0 && kind_ != Kind::reduce_scatter; --step)
      messages.push_back(
          {kind_ == Kind::all_gather ? bytes_ << (steps - 1 - step) : bytes_ >> (steps + 1) << (steps - step),
           1u << step, true});
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool reduces = kind_ != Kind::all_gather && i + 1 < static_cast<std::size_t>(steps);
      phase_.rounds.push_back({{messages[i]}, endpoint_ + (reduces ? reduction(messages[i + 1].bytes) : 0), 1});
    }
  }

  const System& system_;
  Kind kind_;
  std::int64_t bytes_, n_ = 0, endpoint_ = 0;
  bool is_group_;
  Phase phase_;
};

const std::vector<Algorithm>& algorithms_of(const System& system, Kind kind) {
  const auto found = system.algorithms.find(kind);
  if (found == system.algorithms.end())
    throw InputError(fmt::format("{}: must be there, as the workload has such a collective", key_of(kind)),
                     system.name);
  return found->second;
}

std::vector<std::uint32_t> spaced(std::uint32_t count, std::uint32_t step, std::uint32_t from) {
  std::vector<std::uint32_t> ranks(count);
  for (std::uint32_t i = 0; i < count; ++i) ranks[i] = from + i * step;
  return ranks;
}

/// Makes the phases of a collective of all ranks, or of those around `first` that its dimensions hold, one dimension
/// after the other.
class Crossings {
 public:
  Crossings(const Call& call, std::uint32_t first, const System& system, const Network& network)
      : call_(call), first_(first), system_(system), network_(network), algorithms_(algorithms_of(system, call.kind)) {}

  std::vector<Phase> phases(std::int64_t chunk) {
    bytes_ = chunk;
    const char* key = key_of(call_.kind);
    const std::size_t dimensions = network_.dimensions.size();
    const bool has_of_all = std::any_of(algorithms_.begin(), algorithms_.end(), [](auto& one) { return one.of_all; });
    if (has_of_all && algorithms_.size() > 1)
      throw InputError(fmt::format("{}: must be one name where it is of all dimensions at once", key), system_.name);
    if (has_of_all) {
      if (!call_.involved.empty())
        throw InputError(fmt::format("{}: {} walks all dimensions, and the workload has a collective of some of them "
                                     "(involved_dim)",
                                     key, algorithms_.front().name),
                         system_.name);
      add(call_.kind, 0, spaced(network_.ranks(), 1, 0));
      return std::move(phases_);
    }
    if (algorithms_.size() != dimensions)
      throw InputError(fmt::format("{}: must have {} names, one per dimension of {}, not {}", key, dimensions,
                                   network_.name, algorithms_.size()),
                       system_.name);
    if (dimensions > kMaxDimensions)
      throw InputError(fmt::format("topology: must have {} dimensions at most, as ASTRA-sim involves no more in a "
                                   "collective",
                                   kMaxDimensions),
                       network_.name);
    for (std::size_t i = 0; i < dimensions; ++i)
      if (call_.involved.empty() || call_.involved[i]) crossed_.push_back(i);
    if (call_.kind != Kind::all_reduce) {
      if (call_.kind == Kind::all_gather) std::reverse(crossed_.begin(), crossed_.end());
      for (const std::size_t dimension : crossed_) add(call_.kind, dimension);
    } else {
      all_reduce();
    }
    return std::move(phases_);
  }

 private:
  void all_reduce() {
    if (crossed_.size() > 1 && !system_.crossing)
      throw InputError(
          "collective-optimization: must be baseline or localBWAware for an all-reduce of several "
          "dimensions",
          system_.name);
    if (crossed_.size() > 1 && system_.crossing == Crossing::baseline) {
      for (const std::size_t dimension : crossed_) add(Kind::all_reduce, dimension);
      return;
    }
    const std::size_t last = crossed_.size() - 1;
    for (std::size_t i = 0; i < last; ++i) add(Kind::reduce_scatter, crossed_[i]);
    add(Kind::all_reduce, crossed_[last]);
    for (std::size_t i = last; i-- > 0;) add(Kind::all_gather, crossed_[i]);
  }

  void add(Kind kind, std::size_t dimension) {
    std::uint32_t step = 1;
    for (std::size_t i = 0; i < dimension; ++i) step *= network_.dimensions[i].ranks;
    add(kind, dimension, spaced(network_.dimensions[dimension].ranks, step, first_));
  }

  void add(Kind kind, std::size_t dimension, std::vector<std::uint32_t> members) {
    const auto n = static_cast<std::int64_t>(members.size());
    phases_.push_back(
        PhaseMaker(system_, kind, bytes_, std::move(members), false).make(algorithms_[dimension], key_of(call_.kind)));
    phases_.back().queue = static_cast<std::uint32_t>(dimension);
    if (phases_.back().tree) return;  // leaves as many bytes as it found
    if (kind == Kind::reduce_scatter) bytes_ /= n;
    if (kind == Kind::all_gather) bytes_ *= n;
  }

  const Call& call_;
  std::uint32_t first_;
  const System& system_;
  const Network& network_;
  const std::vector<Algorithm>& algorithms_;
  std::vector<std::size_t> crossed_;
  std::int64_t bytes_ = 0;
  std::vector<Phase> phases_;
};

}  // namespace

bool Chunks::has_tree() const {
  return std::any_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.tree.has_value(); });
}

std::pair<std::int64_t, std::int64_t> chunk_sizes(const Call& call, const System& system, const Network& network) {
  if (system.splits == 0)
    throw InputError("preferred-dataset-splits: must be there: into how many chunks a collective is divided",
                     system.name);
  std::int64_t bytes = call.bytes, chunk = bytes / system.splits;
  const std::int64_t ranks = network.ranks();
  if (call.kind != Kind::all_gather && ranks > chunk) chunk = ranks, bytes = system.splits * ranks;
  if (chunk == 0)
    throw InputError(
        fmt::format("preferred-dataset-splits: must be {} at most, for an all-gather of {} bytes", bytes, bytes),
        system.name);
  return {(bytes + chunk - 1) / chunk, chunk};
}

Chunks chunks_of(const Call& call, const std::vector<std::uint32_t>& group, const System& system,
                 const Network& network) {
  Chunks chunks;
  std::int64_t chunk = 0;
  std::tie(chunks.count, chunk) = chunk_sizes(call, system, network);
  if (group.size() == network.ranks() || !call.involved.empty()) {
    const std::uint32_t first = call.involved.empty() ? 0 : group.front();
    chunks.phases = Crossings(call, first, system, network).phases(chunk);
    return chunks;
  }
  // A group of some ranks is one ring of its members, in their order, whatever the dimensions are.
  const std::vector<Algorithm>& algorithms = algorithms_of(system, call.kind);
  const Algorithm ring{AlgorithmKind::ring, false, {}, "ring"};
  chunks.phases.push_back(PhaseMaker(system, call.kind, chunk, group, true)
                              .make(algorithms.size() > 1 ? ring : algorithms.front(), key_of(call.kind)));
  return chunks;
}

}  // namespace manyworlds::experiments::astra_sim
