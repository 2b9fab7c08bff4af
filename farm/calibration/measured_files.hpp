// The files from which a machine is calibrated, told apart by their content: logs of nccl-tests, tables of collectives,
// kernels and training steps, traces of the PyTorch profiler.
#pragma once

#include <string>
#include <vector>

#include "experiments/kernels/kernel_samples.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/measured_collectives/collectives.hpp"

namespace manyworlds::farm {

struct MeasuredFiles {
  std::vector<experiments::measured::MeasuredCollective> collectives;
  std::vector<experiments::import::KernelSample> kernels;
  std::vector<experiments::measured::TrainingStep> steps;
  std::vector<std::string> collective_files, kernel_files, step_files;  // names, in the order given
  std::vector<std::string> notes;  // what the user should know of them, one sentence each
};

/// Reads files as measured on the catalog's GPU `gpu`, whatever device they name; with a `nic_gbps` above 0, between
/// nodes at this rate. Throws core::InputError, which names the file and what would be right, for one of no known kind.
MeasuredFiles read_measured_files(const std::vector<std::string>& paths, const std::string& gpu, double nic_gbps,
                                  const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
