// Any text as an execution of Calculon, with a model of the catalog, and as the model of a valid one: a job whose
// settings there are, or a refusal on one line that names the file.
#include <nlohmann/json.hpp>

#include <fstream>

#include "core/base/error.hpp"
#include "experiments/calculon/calculon.hpp"
#include "experiments/settings/settings.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

constexpr const char* kExecution =
    R"({"num_procs": 16, "tensor_par": 8, "pipeline_par": 2, "data_par": 1, "batch_size": 32, "microbatch_size": 1})";

void check_one(const jobs::JobFile& file, const std::string& model) {
  static const Catalog catalog;
  try {
    const jobs::Job job = jobs::read_calculon_execution(file, {{}, 0, model}, catalog);
    fuzz::require(job.gpus > 0 && !job.stack.empty() && !document_of(job, "{}").empty());
    for (const jobs::JobSetting& one : job.settings) fuzz::require(!find_key(one.key, {}).path.empty());
  } catch (const core::InputError& error) {
    const std::string said = error.what();
    fuzz::require(!said.empty() && said.find('\n') == std::string::npos);
    fuzz::require(said.starts_with(file.path) || said.starts_with(model));
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_json_text(data, size, max_size, seed, kExecution);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  const std::string text(reinterpret_cast<const char*>(data), size), model = (folder / "model.json").string();
  check_one({"/nowhere/execution.json", text}, "gpt3-175b");
  std::ofstream(model, std::ios::binary | std::ios::trunc) << text;
  check_one({"/nowhere/execution.json", kExecution}, model);
  return 0;
}
