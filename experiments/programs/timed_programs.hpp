// Stream programs on a GPU: their kernels timed, their streams and dimensions as a step knows them.
#pragma once

#include <string>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/build/given_programs.hpp"
#include "experiments/programs/cluster_gpus.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::programs {

/// Where the times of kernels come from, in picoseconds of all ranks.
struct TimeSources {
  double measured = 0;  // on this GPU, as they stand in the programs
  double scaled = 0;    // measured on another GPU or at another shape, by what the cost model says of the two
  double modelled = 0;  // of shapes that nobody measured
};

struct TimedPrograms {
  core::workload::GivenPrograms programs;
  std::vector<std::uint32_t> copied_from;  // by program: the number of the one that it is on a kind of GPU
  TimeSources sources;
};

/// Times programs on the GPUs of their ranks; ranks of one program on several kinds get one for each. `measured_on` is
/// the GPU of their measured times; null: the one kind that there is, at full speed. Measured times stand where the
/// cost model has both run kernels alike. Otherwise kernels with a time and a shape are scaled by the ratio of their
/// modelled times, those with bytes alone as kernels that move these; on a GPU of another speed factor all take as much
/// longer. Throws core::InputError, as `what`, if some kernels have neither then, with the names of those that take the
/// most time, and if there are times, several kinds, and no `measured_on`.
TimedPrograms timed_on(const StreamPrograms& programs, const ClusterGpus& gpus, const core::compute::Gpu* measured_on,
                       const std::string& what);
/// The same where all GPUs are alike.
TimedPrograms timed_on(const StreamPrograms& programs, const core::compute::Gpu& gpu,
                       const core::compute::Gpu* measured_on, const std::string& what);

/// Returns given programs as stream programs with measured times: what timed_on() makes of them on any GPU with a null
/// `measured_on` has the same step.
StreamPrograms as_stream_programs(const core::workload::GivenPrograms& given, const std::string& name);

}  // namespace manyworlds::experiments::programs
