#include "experiments/megatron/megatron.hpp"

#include <algorithm>
#include <array>

#include "experiments/megatron/reader.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::array<const char*, 4> kScriptEndings{".sh", ".bash", ".slurm", ".sbatch"};

}  // namespace

bool is_script(const JobFile& file) {
  return file.text.starts_with("#!") ||
         std::find(kScriptEndings.begin(), kScriptEndings.end(), file.ending()) != kScriptEndings.end();
}

bool is_megatron_log(const JobFile& file) {
  return has_argument_dump(file.text);
}

bool is_megatron_config(const JobFile& file) {
  return (file.ending() == ".yaml" || file.ending() == ".yml") && file.text.find("MODEL_ARGS") != std::string::npos;
}

Job read_megatron_log(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(read_argument_dump(file.text, file.path), options, catalog);
}

Job read_megatron_config(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(read_model_config(file.text, file.path), options, catalog);
}

Job read_megatron_script(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(read_script(file.text, file.path, options.environment), options, catalog);
}

Job megatron_job(const JobArguments& arguments, const JobOptions& options, const Catalog& catalog) {
  return MegatronReader(arguments, options, catalog).read();
}

}  // namespace manyworlds::experiments::jobs
