// Splits of a model's layers over the virtual stages of a pipeline whose largest stage is as small as can be: in
// parameters, in modelled time, or in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/step/layout/configuration.hpp"
#include "core/workload/strategy/contiguous_split.hpp"

namespace manyworlds::core::step {

/// Returns why there is no split as the strategy asks for, with the values that stand against it; empty if there is
/// one. The strategy's split is weighed.
std::string why_no_split(const Configuration& configuration);

/// Returns the layers of each virtual stage, in the order of the model, such that the largest stage is least. By time
/// and by memory it is, of several such splits, among those whose slowest stage takes least time, among these the one
/// of which the squares of the stages' times have the least sum; then, and by parameters at once, the one with fewest
/// layers in the first stage, then in the second, and so on. Every stage has a layer but a first one with the embedding
/// and a last one with the head. What a stage weighs is stage_weight(), and its time is its weight by_time. Throws
/// InternalError if sizes do not divide over ranks; why_no_split() has to be empty.
std::vector<std::int64_t> split_layers(const Configuration& configuration);

/// Returns what a virtual stage with layers `begin` to `end` - 1 weighs under a split, embedding, head and layers for
/// multi-token prediction included.
///
/// by_parameters: trained parameters of a rank, and of a step that is a forward pass alone all of them; the table of
/// the head counts even where it is the embedding's, as DeepSpeed counts it. by_time: picoseconds of the kernels of one
/// forward and one backward pass, recomputation included, of the slowest of its ranks; neither collectives nor
/// launches. by_memory: bytes of the peak footprint of the rank that needs most of them, with the micro-batches that
/// its schedule holds.
std::int64_t stage_weight(const Configuration& configuration, workload::LayerSplit split, std::size_t stage,
                          std::int64_t begin, std::int64_t end);

}  // namespace manyworlds::core::step
