// Any text as a job of NeMo, Automodel, MLPerf or Primus: each of their readers makes settings of it whose keys there
// are, or refuses it.
#include "core/base/error.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/primus/primus.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/text/text.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

void check_one(const auto& read, const char* name, const std::string& text) {
  static const Catalog catalog;
  try {
    const jobs::Job job = read({std::string("/nowhere/") + name, text}, {{}, 64, ""}, catalog);
    for (const jobs::JobSetting& one : job.settings) fuzz::require(!find_key(one.key, {}).path.empty());
  } catch (const core::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    import::check_text(text, "job");
  } catch (const core::InputError&) {
    return 0;
  }
  check_one(jobs::read_nemo, "x.yaml", text);
  check_one(jobs::read_automodel, "x.yaml", text);
  check_one(jobs::read_primus, "x.yaml", text);
  check_one(jobs::read_mlperf_config, "config_x.sh", text);
  return 0;
}
