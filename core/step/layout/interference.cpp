#include "core/step/layout/interference.hpp"

namespace manyworlds::core::step {

namespace {

stream::Interference interference_of(const workload::GivenPrograms& programs, const compute::Gpu& gpu) {
  if (programs.slowed == workload::SlowedKernels::none) return {};
  if (programs.slowed == workload::SlowedKernels::calibrated) return round_half_up(gpu.communication_slowdown * 1e6);
  stream::Interference result;
  result.units = gpu.compute_units;
  result.units_to_move = programs.units_to_move;
  result.units_to_reduce = programs.units_to_reduce;
  return result;
}

}  // namespace

stream::Interference interference_of(const Configuration& configuration, const compute::Gpu& gpu) {
  using workload::CommunicationEngine;
  if (configuration.transport.fidelity == network::Fidelity::analytic) return {};
  if (configuration.programs) return interference_of(*configuration.programs, gpu);
  const workload::Stack& stack = configuration.strategy.stack;
  if (stack.communication_engine == CommunicationEngine::calibrated)
    return round_half_up(gpu.communication_slowdown * 1e6);
  stream::Interference result;
  result.units = gpu.compute_units;
  result.units_to_reduce = stack.communication_sms;
  result.units_to_move = stack.communication_engine == CommunicationEngine::sm ? stack.communication_sms : 0;
  return result;
}

}  // namespace manyworlds::core::step
