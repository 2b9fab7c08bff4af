// Any text as a topology file: it is a fabric on which every GPU finds the others, or it is refused.
#include "core/base/error.hpp"
#include "experiments/import/topology.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = experiments::import::parse_topology({reinterpret_cast<const char*>(data), size}, "topology.txt");
    fuzz::require(file.gpus_per_server > 0);
  } catch (const core::InputError&) {
  }
  return 0;
}
