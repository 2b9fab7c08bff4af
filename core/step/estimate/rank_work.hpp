// What the ranks of a class do in a step at least, and how long a step is in which they wait for nothing but the stages
// before them: the sums of lower bounds.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/step/estimate/least_times.hpp"
#include "core/step/estimate/pipeline_passes.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/layer/rank_class.hpp"

namespace manyworlds::core::step {

/// Whether a bound counts what replicas do together: gradients, parameters, the optimizer. If it does not, it holds
/// whatever ZeRO stage, sharding group, buckets and precision of gradients the configuration has, and however these
/// overlap.
enum class Replicas : std::uint8_t { counted, open };

/// The passes of one micro-batch through a chunk. The backward pass is whole or in two, whichever takes less.
struct Passes {
  Time forward = 0, backward = 0;
};

using FamilyTimes = std::array<Time, 2>;  // of dense parameters and experts, which use streams of their own

/// Reductions of the gradients of a chunk.
struct ChunkReductions {
  FamilyTimes all{}, last_bucket{};
  Time interfaces = 0;  // what network interfaces that the families share are busy with them

  Time least() const;
};

/// What the ranks of a class do at least.
struct RankWork {
  std::vector<Passes> chunks;              // by chunk of the rank, in the order of the model
  std::vector<ChunkTimes> in_turn;         // by chunk of the rank
  std::vector<ChunkReductions> gradients;  // by chunk of the rank; empty if replicas are open, or under ZeRO 3
  Passes first;                            // through the first of them, until its output may be sent
  Time launches = 0;                       // of a micro-batch through all chunks, by the host
  Time optimizer = 0;
  Time factors = 0;                  // gradients of weights from the factors of all replicas, behind all passes
  Time reductions = 0, gathers = 0;  // of all gradients and all parameters once
};

/// All of a rank that its work depends on: its chunks in the order of the model, each with its layers and whether
/// embedding and head are with them; its experts; its machine.
using RankLayer = std::pair<workload::LayerKind, workload::ActivationPolicy>;
using RankChunk = std::tuple<std::int64_t, bool, bool, std::vector<RankLayer>>;
using RankContent = std::tuple<std::vector<RankChunk>, std::int64_t, std::uint32_t>;

/// Sums of a configuration, which must outlive it; layers of its stages, and what is recomputed of them, may change
/// meanwhile.
class RankWorks {
 public:
  RankWorks(const Configuration& configuration, const Links& links, Replicas replicas)
      : configuration_(configuration),
        strategy_(configuration.strategy),
        replicas_(replicas),
        families_(workload::replicated_families(configuration.model, strategy_)),
        least_(configuration, links) {}

  RankContent content_of(const workload::RankClass& rank_class) const;
  RankWork work_of(const workload::RankClass& rank_class);
  /// Returns the time of a step in which the rank waits for nothing but the stages before it: for `fill`, the passes of
  /// the first micro-batch through these, and of the last one back.
  Time step_ps(const RankWork& rank, const Passes& fill, const StagePasses& in_turn) const;
  /// Adds a stage, of which these are the ranks, to the stages before: the first passes of the ranks behind wait for
  /// it, and where backward passes are whole, it ends with the last micro-batch coming back.
  void add_to(Passes& fill, const std::vector<const RankWork*>& stage);
  /// Returns what a transfer from a stage to the next takes.
  Time transfer_ps();

 private:
  /// Whether a pass counts all that it gathers, or only what cannot have been gathered while it waited for its input.
  enum class Inputs : std::uint8_t { waited_for, there };

  /// The work of a rank, and what its collectives take from its kernels.
  struct Work {
    workload::StageWork stage;
    stream::Interference interference;
  };
  Passes passes_of(const Work& work, const std::vector<workload::ModelPart>& chunk);
  PassTimes times_of(const Work& work, const std::vector<workload::ModelPart>& chunk, Inputs inputs);
  /// Whether weight gradients have passes of their own.
  bool has_split_passes() const;
  Time chained_ps(const Work& work, const std::vector<workload::ModelPart>& chunk, workload::PassKind kind);
  static Time kernels_of(const workload::PhaseList& pass);
  static Passes kernels_of(const workload::StageWork& work, const std::vector<workload::ModelPart>& chunk);
  /// Whether passes are those of ZeRO 3, or may be.
  bool is_sharded() const;
  /// ZeRO 3: a unit is gathered during the unit before it at the earliest, the first of a forward pass before it; a
  /// pass with weight gradients ends when these are scattered. Gathers that may be left out, because the unit was just
  /// used or is one with another, are not counted; nor, where the inputs of the pass are there, the first two, for
  /// which nothing of it has to begin.
  Time sharded_ps(const Work& work, const std::vector<workload::ModelPart>& chunk, workload::PassKind kind,
                  Inputs inputs);
  /// Returns the times of a collective over parameters among replicas.
  FamilyTimes replicas_ps(collective::Kind kind, std::int64_t bytes_each, const workload::Parameters& parameters);
  /// Adds reductions and gathers of ZeRO 0 to 2.
  void add_buckets(const workload::StageWork& work, RankWork& result);
  void add_buckets(const workload::StageWork& work, const std::vector<workload::ModelPart>& chunk, std::size_t family,
                   ChunkReductions& reductions, ChunkReductions& gathers);
  static Time least_of(const std::vector<ChunkReductions>& chunks);
  /// Whether parameters are gathered beside the first forward pass.
  bool gathers_first() const;
  /// Whether kernels of one micro-batch fill the waits of another.
  bool interleaves() const;
  Time launches_of(const workload::StageWork& work) const;
  /// Returns when the gradients are reduced if buckets follow one another from when passes with weight gradients begin,
  /// the last bucket of each when it ends.
  Time reduced_in_turn(const RankWork& rank, const StagePasses& in_turn) const;

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const Replicas replicas_;
  const std::vector<workload::ParameterFamily> families_;
  LeastTimes least_;
};

}  // namespace manyworlds::core::step
