// Any text as a sweep, or as the serialized sweep of a run directory: it is read or refused, and one that is read is
// serialized and read back to the same bytes. Large sweeps take their time by right, so small ones must do.
#include "core/base/error.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/sweep/experiment.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const experiments::Catalog catalog;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const bool frozen = size > 0 && text[0] == '{';
    const experiments::Sweep sweep =
        frozen ? experiments::deserialize(text)
               : experiments::parse_sweep(text, "sweep.yaml", {}, catalog, {.max_points = 200});
    const std::string bytes = experiments::serialize(sweep);
    fuzz::require(experiments::serialize(experiments::deserialize(bytes)) == bytes);
  } catch (const core::InputError&) {
  }
  return 0;
}
