// Any text as a TOML file of torchtitan, and as a config_registry.py each of whose functions is read: a job with a
// stack and settings, or a refusal.
#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/torchtitan/python_values.hpp"
#include "experiments/torchtitan/torchtitan.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

template <class Read>
void try_to(const Read& read) {
  try {
    const jobs::Job job = read();
    fuzz::require(!job.stack.empty() && !job.settings.empty() && !document_of(job, "{}").empty());
  } catch (const core::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalog catalog;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const jobs::JobOptions options{{}, 64};
  try_to([&] { return jobs::read_torchtitan_toml({"job.toml", text}, options, catalog); });
  std::vector<std::string> names{""};
  try {
    const std::vector<std::string> found = jobs::torchtitan::PythonFile(text, "config_registry.py").functions();
    names.insert(names.end(), found.begin(),
                 found.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(found.size(), 4)));
  } catch (const core::InputError&) {
  }
  for (const std::string& name : names)
    try_to([&] { return jobs::read_torchtitan_registry({"llama3/config_registry.py", text, name}, options, catalog); });
  return 0;
}
