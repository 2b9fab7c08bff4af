// The experiments of a document of phases, as one sweep, and which of them are what of which phase.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/phase_files/phases_file.hpp"
#include "experiments/phases/phase_sweep.hpp"
#include "experiments/rollouts/decoding.hpp"
#include "experiments/rollouts/decoding_grid.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments::phases {

/// What of a rollout is simulated, by ids of experiments.
struct RolloutExperiments {
  std::int64_t replicas = 0;
  std::vector<std::int64_t> tokens;  // of each response
  std::vector<Decoding> decodings;   // of each replica
  DecodingGrid grid;
  std::vector<std::vector<std::uint32_t>> decode;  // as DecodingGrid::lengths
  std::vector<std::uint32_t> checks;               // as DecodingGrid::checks
  std::uint32_t prefill_one = 0, prefill_many = 0;
  std::int64_t prefill_samples = 1;  // of prefill_many
  bool is_pipeline = false;          // pp > 1
};

/// What of a transfer is simulated: one bucket, unless nothing moves.
struct TransferExperiments {
  std::int64_t weight_bytes = 0;  // of the whole model
  std::int64_t buckets = 0, bucket_bytes = 0;
  std::int64_t gathered_over = 1;       // ranks that hold the model together
  std::int64_t receivers = 0;           // GPUs that get a broadcast
  std::int64_t merged_rank = 0;         // of the pairs that are merged into the weights; 0: there are none
  std::optional<std::uint32_t> bucket;  // id; nullopt: nothing moves
};

struct PhaseExperiments {
  std::int64_t gpus = 0;              // of its pool
  std::optional<std::uint32_t> step;  // of training and scoring
  RolloutExperiments rollout;         // of generation
  TransferExperiments transfer;       // of transfers
};

struct ExpandedPhases {
  PhasesFile file;
  Sweep sweep;
  std::vector<PhaseExperiments> phases;     // as PhasesFile::phases
  std::vector<std::int64_t> gpus_of_pools;  // as PhasesFile::pools
  std::vector<std::string> notes;           // settings that follow from others, for people
  std::vector<std::string> replaced;        // settings of the document that a phase has otherwise, and why
};

/// Makes the experiments. Steps of training and scoring that say neither their batch nor their sequence take those of
/// the rollout: all its samples, over the phase's steps, at the mean of their lengths. Texts of tables that are not
/// among `tables` are read from the disk, and kept with the sweep. Throws InputError with file, line and key: as
/// read_sweep() does, for pools that are not the cluster's GPUs, for strategies that do not fill their pool, and for
/// transfers between clusters that differ.
ExpandedPhases expand(PhasesFile file, const std::vector<std::string>& overrides, const Catalog& catalog,
                      const TextsByPath& tables = {});

/// Returns whether expand() made a sweep.
bool is_of_phases(const Sweep& sweep);

/// Returns what expand() returned beside this sweep, which it made. Throws InputError where it cannot be made again: of
/// a catalog or a cluster file that is not at hand, or of which it would now be another.
ExpandedPhases expand_again(const Sweep& sweep, const Catalog& catalog);

}  // namespace manyworlds::experiments::phases
