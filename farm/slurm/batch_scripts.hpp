// The batch scripts of a sweep: the compiled-in templates of slurm/ with their placeholders filled in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::farm {

struct BatchTemplate {
  std::string_view name, text;
};
/// Returns the templates of slurm/. Generated at build time.
const std::vector<BatchTemplate>& batch_templates();

struct BatchJob {
  std::string name;                  // name of the sweep
  std::string run, scripts;          // absolute paths of the run directory and the scripts' directory
  std::vector<std::string> command;  // up to -o: optionally srun, then the program, `sweep` and its arguments
  std::string program;               // path of the program
  std::uint32_t nodes = 1;           // nodes of the job; each task of an array has one
  std::uint32_t tasks_per_node = 1;
  std::uint32_t threads = 1;  // CPUs of a task, which its simulator uses
  std::uint32_t shards = 0;   // tasks of the array; 0: a single job
  std::uint32_t margin_s = 120;
  std::string time, partition, account;  // as sbatch accepts them; "": the site's default
};

struct BatchScript {
  std::string name, text;
};
/// Returns sweep.sh and, for an array, merge.sh. Throws core::InputError for texts that a script cannot contain.
std::vector<BatchScript> batch_scripts(const BatchJob& job);

/// Returns `template_text` with every @NAME@ replaced by its value, once. Throws core::InternalError if a value is
/// missing.
std::string fill_template(std::string_view template_text,
                          const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace manyworlds::farm
