// A step whose data-parallel replicas draw samples of their own: the programs of a configuration with documents, in
// which each pass takes what attention to its own documents does, instead of the mean over all samples.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/given_programs.hpp"

namespace manyworlds::core::step {

/// Steps of more operations, of all ranks together, are not drawn.
inline constexpr std::uint64_t kMaxDrawnOps = 4'000'000;

/// Whether with_drawn_documents() makes a step of this configuration: its samples have documents, pipelines are not
/// bidirectional (in which micro-batches have two numbers), and its programs, `balanced`, have few enough operations.
bool can_draw_documents(const Configuration& configuration, const workload::GivenPrograms& balanced);

/// Makes draws of a step. `balanced` is as_given() of the configuration. Every micro-batch of every replica has samples
/// of its own, drawn with repetition from those of Model::documents; ranks of tensor, context and pipeline parallelism
/// share them. The difference to the mean of a pass' attention is spread over all kernels of the pass in proportion to
/// their times; context-parallel ranks have the mean of their chunks of these samples.
class DrawnDocuments {
 public:
  DrawnDocuments(const Configuration& configuration, const RankLayout& layout, const workload::GivenPrograms& balanced);

  /// Returns the programs of step `draw`: one for each class of ranks and replica.
  workload::GivenPrograms draw(std::uint64_t draw);

 private:
  /// Attention of a micro-batch in the passes of a class of ranks, by kind of pass and chunk.
  using PassTimes = std::map<std::pair<workload::PassKind, std::int32_t>, Time>;
  const PassTimes& times_of(std::uint32_t rank_class, const std::vector<std::size_t>& samples);
  workload::Program drawn_program(std::uint32_t rank_class, std::int64_t replica, std::uint64_t draw);

  const Configuration& configuration_;
  const RankLayout& layout_;
  const workload::GivenPrograms& balanced_;
  std::vector<PassTimes> mean_;  // by class
  std::map<std::pair<std::uint32_t, std::vector<std::size_t>>, PassTimes> drawn_;
};

}  // namespace manyworlds::core::step
