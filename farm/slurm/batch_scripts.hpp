// The batch scripts of a sweep: the templates of slurm/, which are compiled in, with their words filled in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::farm {

struct BatchTemplate {
  std::string_view name, text;
};
/// The files of slurm/ that are templates; the build makes this.
const std::vector<BatchTemplate>& batch_templates();

struct BatchJob {
  std::string name;                  // of the sweep
  std::string run, scripts;          // absolute paths: of the run directory and of the scripts' own folder
  std::vector<std::string> command;  // up to -o: srun where wanted, the program, sweep and its words
  std::string program;               // its path
  std::uint32_t nodes = 1;           // of the job; of an array each task has one
  std::uint32_t tasks_per_node = 1;
  std::uint32_t shards = 0;  // tasks of an array; 0: one job
  std::uint32_t margin_s = 120;
  std::string time, partition, account;  // as sbatch takes them; "": the site's default
};

struct BatchScript {
  std::string name, text;
};
/// sweep.sh and, for an array, merge.sh. Throws InputError for words that cannot stand in a script.
std::vector<BatchScript> batch_scripts(const BatchJob& job);

/// `template_text` with every @WORD@ that `words` has replaced, once. Throws InternalError for words left over.
std::string filled_in(std::string_view template_text, const std::vector<std::pair<std::string, std::string>>& words);

}  // namespace manyworlds::farm
