// Any text as a launch script, of Megatron-LM or Megatron-Bridge, as a log with a dump of arguments, or as a
// model_config.yaml: its arguments are read, each with a name that is known, or it is refused.
#include "core/base/error.hpp"
#include "experiments/bridge/bridge.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/text/text.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

jobs::JobArguments read(const std::string& text) {
  if (jobs::has_argument_dump(text)) return jobs::read_argument_dump(text, "train.log");
  if (text.find("MODEL_ARGS") != std::string::npos) return jobs::read_model_config(text, "model_config.yaml");
  const jobs::JobFile file{"/nowhere/train.sh", text};
  if (jobs::is_bridge_script(file)) return jobs::bridge_arguments(file, {});
  return jobs::read_script(text, "/nowhere/train.sh", {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    import::check_text(text, "job");
    for (const jobs::Argument& one : read(text).arguments) fuzz::require(jobs::find_argument(one.name) != nullptr);
  } catch (const core::InputError&) {
  }
  return 0;
}
