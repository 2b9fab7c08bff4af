// Compares measured kernels, memory peaks and collectives with their predictions, without using the farm.
#pragma once

#include <vector>

#include "experiments/measured/memory.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/measured_collectives/collectives.hpp"
#include "experiments/measured_kernels/kernels.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// The families are dense models with a peak of at least 20 GB, dense models below that, experts, and FSDP.
Comparison compare(const std::vector<experiments::measured::MemoryRow>& rows);

/// Peaks of memory that were measured on every rank of a training step, allocated and reserved: two families for each
/// of the steps' families.
Comparison compare_rank_memory(const std::vector<experiments::measured::TrainingStep>& steps);

/// The families are given by the rows: by GPU, by intra-node or inter-node, and by size.
Comparison compare(const std::vector<experiments::measured::MeasuredCollective>& rows);

/// The families are given by the rows: by kind of kernel, number format, GPU, and range of the time.
Comparison compare(const std::vector<experiments::measured::MeasuredKernel>& rows);

}  // namespace manyworlds::farm
