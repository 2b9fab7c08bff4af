// Any text as the log of NCCL's Inspector: a refusal on one line, or programs and an account.
#include "experiments/nccl_logs/read_inspector.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const programs::Imported imported = nccl_logs::import_inspector({{"log", text}});
    if (imported.refused.empty())
      fuzz::require_programs(imported.programs);
    else
      fuzz::require(imported.refused.find('\n') == std::string::npos);
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "log");
  }
  return 0;
}
