// Any text as a DeepSpeed configuration, or as a script that launches Megatron-DeepSpeed: a job or a refusal.
#include "core/base/error.hpp"
#include "experiments/deepspeed/deepspeed.hpp"
#include "experiments/text/text.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalog catalog;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    import::check_text(text, "job");
    const jobs::Job job = text.starts_with('{')
                              ? jobs::read_deepspeed_config({"ds_config.json", text}, {{}, 16, "llama2-7b"}, catalog)
                              : jobs::read_deepspeed_script({"/nowhere/train.sh", text}, {{}, 16}, catalog);
    fuzz::require(!job.stack.empty() && !job.settings.empty() && !document_of(job, "{}").empty());
  } catch (const core::InputError&) {
  }
  return 0;
}
