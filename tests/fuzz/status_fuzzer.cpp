// Any texts as what a run directory says of its run: each is refused as none of ours, or everything that tells it does.
// An input is an object with the files by name; a text in it is a file's text as it is. Another input is every file.
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "farm/serve/metrics.hpp"
#include "farm/status/progress.hpp"
#include "farm/status/run_status.hpp"
#include "io/log/run_directory.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using nlohmann::json;

namespace {

constexpr const char* kFiles[] = {"status.json", "complete.json", "build.json", "lock"};
constexpr const char* kFresh = R"({"status.json": {}, "complete.json": {"format": 1, "exit": 0}})";

void put_files(const fuzz::WorkFolder& folder, std::string_view text) {
  const json input = json::parse(text, nullptr, false);
  for (const char* name : kFiles) {
    std::filesystem::remove(folder / name);
    if (!input.is_object())
      folder.put(name, text);
    else if (const auto file = input.find(name); file != input.end())
      folder.put(name, file->is_string() ? file->get<std::string>() : file->dump());
  }
}

template <class Look>
void look_in_peace(const Look& look) {
  try {
    look();
  } catch (const core::InputError&) {
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_json_text(data, size, max_size, seed, kFresh);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  folder.put("sweep.resolved.json", "{}");
  put_files(folder, {reinterpret_cast<const char*>(data), size});
  look_in_peace([] {
    const auto status = farm::read_run_status(folder.path);
    if (!status) return;
    fuzz::require(!farm::describe_status(*status).empty() && !farm::progress_line(*status).empty());
    fuzz::require(!farm::serve::run_metrics(*status).empty() && !status->dump().empty());
  });
  look_in_peace([] {
    const auto completion = farm::completion_of(folder.path);
    if (completion) fuzz::require(completion->exit_code >= 0 && completion->exit_code < 256);
  });
  look_in_peace([] { io::read_build(folder.path); });
  return 0;
}
