#include "core/step/run/run_beside.hpp"

#include <memory>
#include <utility>

#include "core/step/network/isolated.hpp"

namespace manyworlds::core::step {

RunBeside::RunBeside(const CompiledStep& compiled, const Step& step, const FluidNetwork::Fork& fork,
                     std::int64_t slowed_by_ppm, const network::ComponentCache& packets, const IsolatedResults& known,
                     std::atomic<Time>* reached)
    : compiled_(compiled),
      packets_(packets.transport(), packets.fabric()),
      efficiency_(packets_),
      results_(known),
      reached_(reached != nullptr ? reached : &own_reached_),
      step_(step, fork, efficiency_, results_, reached_) {
  step_.slow_contended(slowed_by_ppm);
}

/// Whoever asks for a stop may be heard by this thread instead of the other: it is passed on.
void RunBeside::work(std::size_t /*thread*/) {
  try {
    while (!stops_ && !result_) {
      auto outcome = step_.advance();
      if (auto* const done = std::get_if<StepResult>(&outcome)) {
        result_ = std::move(*done);
        return;
      }
      for (const CollectiveOpId id : std::get<MissingResults>(outcome).collective_ops) {
        const CollectiveOp& op = compiled_.collective_ops()[id];
        auto& slot = results_[op.key];
        if (!slot)
          slot = std::make_shared<IsolatedResult>(of_all_ranks(
              uncontended(*op.dag, *op.connections, compiled_.layout().graph(), compiled_.transport()), op));
      }
    }
  } catch (const StepStopped&) {
    if (!stops_) reached_->store(kStopStep);
    throw;
  }
}

/// The other run, which is over, stores nothing any more.
void RunBeside::stop() {
  stops_ = true;
  if (run(0)) return;
  reached_->store(kStopStep);
  wait();
}

}  // namespace manyworlds::core::step
