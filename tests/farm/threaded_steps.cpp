// One step on several threads: the same bytes for any number of them.
#include <catch2/catch.hpp>

#include "farm/system/thread_pool.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using farm::ThreadPool;

namespace {

/// Drawn configurations whose collectives meet on links between leaves.
step::Configuration contended(std::uint64_t seed) {
  step::Configuration configuration = draw_configuration(seed);
  configuration.transport.routing = network::Routing::ecmp_hash;
  configuration.transport.seed = static_cast<std::int64_t>(seed);
  return configuration;
}

/// Does what is offered at once, or leaves all of it to the one that offers.
class AtOnce final : public core::HelperThreads {
 public:
  explicit AtOnce(bool helps) : helps_(helps) {}
  std::size_t threads() const override { return 2; }
  bool may_help() override { return false; }  // with components
  bool help() override { return false; }
  void offer(const std::shared_ptr<core::AheadTask>& task) override {
    ++offered;
    if (helps_) task->run(1);
  }
  int offered = 0;

 private:
  bool helps_;
};

std::string bytes_of(const step::Configuration& configuration, core::HelperThreads* helpers) {
  step::SimulationContext context(true, helpers);
  step::IsolatedResults results;
  return encode(context.run(context.compile(configuration), results));
}

}  // namespace

TEST_CASE("steps have the same bytes for one, two and three threads: composed, coupled and as fluids") {
  std::uint64_t helped = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed)
    for (const bool fluid : {false, true}) {
      step::Configuration configuration = contended(seed);
      if (fluid) configuration.transport.fidelity = network::Fidelity::fluid;
      const std::string alone = bytes_of(configuration, nullptr);
      for (const std::size_t threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        INFO("seed " << seed << ", " << threads << " threads" << (fluid ? ", fluid" : ""));
        REQUIRE(bytes_of(configuration, &pool) == alone);
        helped += pool.tasks_done();
      }
      if (fluid || seed % 5 != 0) continue;
      configuration.composition = step::Composition::coupled;
      ThreadPool pool(2);
      REQUIRE(core::step::decode_step(bytes_of(configuration, &pool)).step_ps ==
              core::step::decode_step(alone).step_ps);
    }
  CHECK(helped > 0);
}

TEST_CASE("what an error of fluids is worth in the step is simulated beside it, with the same answer") {
  int offered = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    step::Configuration configuration = contended(seed);
    configuration.transport.fidelity = network::Fidelity::fluid;
    step::StepResult alone = core::step::decode_step(bytes_of(configuration, nullptr));
    for (const bool helps : {false, true}) {
      INFO("seed " << seed << (helps ? ", at once" : ", by the caller"));
      AtOnce helper(helps);
      step::StepResult with_helper = core::step::decode_step(bytes_of(configuration, &helper));
      CHECK((with_helper.fluid.step == 0 || helper.offered == 1));
      with_helper.computed = alone.computed;  // answers of a transport that are found twice count once
      REQUIRE(encode(with_helper) == encode(alone));
      offered += helper.offered;
    }
  }
  CHECK(offered > 20);
}
