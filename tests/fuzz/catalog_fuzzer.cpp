// Any text as a data file of a GPU, a model, a cluster and a stack: it is read or refused, and what is read says where
// every figure is from.
#include "core/base/error.hpp"
#include "experiments/catalog/catalog.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* kind : {"gpus", "libraries", "models", "clusters", "stacks"}) {
    try {
      for (const auto& [key, figure] : experiments::read_catalog_entry(kind, text, "x.yaml").values)
        fuzz::require(!key.empty() && !figure.source.empty() && !figure.certainty.empty());
    } catch (const core::InputError&) {
    }
  }
  return 0;
}
