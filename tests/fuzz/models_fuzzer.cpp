// Any text as the configuration of a model: it is read or refused on one line with the file's name, and a model that is
// read has layers whose parameters can be counted.
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/models/read_model_config.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_json_text(data, size, max_size, seed, R"({"model_type": "llama"})");
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* member : {"", "text_config"}) {
    try {
      const auto config = experiments::models::parse_model_config(text, "config.json", member);
      const core::workload::Model model = config.model();
      const std::int64_t all = core::workload::model_parameters(model);
      fuzz::require(all > 0 && core::workload::active_parameters(model) > 0);
      fuzz::require(core::workload::active_parameters(model) <= all);
      // Models of mixers alone have no heads.
      fuzz::require(model.layers > 0 &&
                    (model.heads == 0 || (model.heads % model.kv() == 0 && model.head_width() > 0)));
      fuzz::require(experiments::models::summary(config).find('\n') == std::string::npos);
    } catch (const core::InputError& error) {
      const std::string said = error.what();
      fuzz::require(said.rfind("config.json", 0) == 0 && said.find('\n') == std::string::npos);
    }
  }
  return 0;
}
