// The critical path of a step that was written down by hand.
#include "core/step/run/simulation_context.hpp"
#include "farm/explain/critical_path_text.hpp"
#include "tests/experiments/given_steps.hpp"

using namespace manyworlds::tests;
using namespace manyworlds;

TEST_CASE("a step waits for the rank that is late, then for what they do together, then for the other rank") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"two\"}\n{\"dimension\":\"all\",\"part\":\"exposed_dp\"}\n"
      "{\"groups\":\"all\",\"ranks\":[[0,1]]}\n"
      "{\"program\":\"early\",\"ranks\":\"0\",\"streams\":[\"compute\",\"side\"]}\n"
      "{\"kernel\":\"short\",\"us\":10,\"part\":\"forward\",\"stream\":\"compute\"}\n"
      "{\"kernel\":\"aside\",\"us\":15,\"stream\":\"side\"}\n"
      "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":1000000,\"stream\":\"compute\"}\n"
      "{\"kernel\":\"last\",\"us\":5,\"part\":\"optimizer\",\"stream\":\"compute\"}\n"
      "{\"program\":\"late\",\"ranks\":\"1\",\"streams\":[\"compute\"]}\n"
      "{\"kernel\":\"long\",\"us\":20,\"part\":\"forward\",\"stream\":\"compute\"}\n"
      "{\"kernel\":\"long\",\"us\":10,\"part\":\"forward\",\"stream\":\"compute\"}\n"
      "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":1000000,\"stream\":\"compute\"}\n"
      "{\"kernel\":\"tail\",\"us\":2,\"part\":\"optimizer\",\"stream\":\"compute\"}\n";
  Cluster cluster;
  cluster.gpus_per_node = 2, cluster.nodes = 1;
  step::Configuration configuration = config_of(cluster, 1, 1, 1);
  configuration.programs = std::make_shared<const workload::GivenPrograms>(
      experiments::programs::timed_on(experiments::programs::parse_program_file(text, "two"), configuration.gpu,
                                      nullptr, "two")
          .programs);
  configuration.model = {};
  configuration.strategy = {};
  configuration.transport.fidelity = network::Fidelity::analytic;
  step::SimulationContext context;
  step::IsolatedResults results;
  const step::CompiledStep compiled = context.compile(configuration);
  step::Recording recording;
  for (std::uint32_t rank = 0; rank < 2; ++rank) recording.ranks.push_back({step::RankId(rank)});
  const step::StepResult result = context.run(compiled, results, &recording);
  const farm::CriticalPath path = farm::critical_path_of(compiled, recording);
  CHECK(path.operations == 4);
  CHECK(path.ranks == 2);
  CHECK(path.step_ps == result.step_ps);
  const Time together = alone("all_reduce", 1'000'000, "[0,1]", 2);
  REQUIRE(path.sums.size() == 3);
  std::map<std::string, Time> by_name;
  for (const farm::CriticalSum& sum : path.sums) by_name[sum.kind + " " + sum.name] = sum.ps;
  CHECK(by_name == std::map<std::string, Time>{
                       {"forward long", 30'000'000}, {"all all_reduce", together}, {"optimizer last", 5'000'000}});
  CHECK(result.step_ps == 35'000'000 + together);
}
