// Any text as an algorithm of MSCCL: programs whose ranks meet, or a refusal of one line. What is checked symbolically
// runs: its programs have an order in which every step comes.
#include "core/collective/transfers/given_transfers.hpp"
#include "experiments/msccl/algorithm.hpp"
#include "experiments/msccl/given_algorithms.hpp"
#include "experiments/msccl/read_algorithm.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const msccl::Algorithm algorithm = msccl::parse_algorithm(text, "a.xml");
    std::size_t steps = 0, sends = 0;
    for (const msccl::Gpu& gpu : algorithm.gpus)
      for (const msccl::ThreadBlock& block : gpu.blocks)
        for (const msccl::Step& step : block.steps) {
          steps += step.kind == msccl::StepKind::nop ? 0 : 1;
          sends += step.sends() ? 1 : 0;
        }
    if (algorithm.chunks > 4'096) return 0;  // lawful, and slow
    // Two loops, the last of which is shorter.
    const std::int64_t chunk = algorithm.protocol == msccl::Protocol::simple ? 3 << 20 : 600'000;
    const programs::StreamPrograms programs =
        msccl::import_algorithm(text, "a.xml", {algorithm.chunks * chunk}).programs;
    fuzz::require_programs(programs);
    std::size_t operations = 0;
    for (const std::uint32_t program : programs.ranks.program_of_rank)
      operations += programs.programs[program].ops.size();
    fuzz::require(operations >= 2 * steps);
    // As a collective of a step it has each transfer of every loop.
    const core::collective::TunerRule rule = msccl::rule_of(text, "a.xml");
    std::uint32_t transfers = 0, nodes = 0;
    if (rule.given->divides(algorithm.chunks * chunk))
      write_given(*rule.given, algorithm.chunks * chunk,
                  {[&](const core::collective::GivenTransfer&) { return ++transfers, nodes++; },
                   [&](std::uint32_t, std::span<const std::uint32_t>) { return nodes++; }});
    const auto loops = static_cast<std::size_t>(core::collective::loops_of(chunk, rule.given->loop_bytes).count);
    fuzz::require(transfers == loops * sends);
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "a.xml");
  }
  return 0;
}
