#include "experiments/megatron/launch_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using Options = std::map<std::string, std::int64_t>;

constexpr std::int64_t kMaxSize = 1 << 20;

/// Options of launchers that say how many nodes or GPUs there are.
constexpr std::string_view kSizes[] = {"--nnodes",        "--num-nodes",     "--nodes", "-N",  "--nproc-per-node",
                                       "--num-gpus",      "--ntasks",        "-n",      "-np", "--ntasks-per-node",
                                       "--gpus-per-node", "--gpus-per-task", "--gres"};

std::string short_name(const std::string& name) {
  if (name == "-N") return "nodes";
  if (name == "-n" || name == "-np") return "ntasks";
  return name;
}

/// Returns the number at the end of a value such as 8, gpu:8 or gpu:h100:8; 0 if there is none.
std::int64_t number_in(const std::string& value) {
  if (!shell::is_known(value)) return 0;
  const auto number = shell::integer_of(value.substr(value.rfind(':') + 1));
  const bool range = value.find(':') != std::string::npos && value.find("gpu") == std::string::npos;
  return number && *number > 0 && *number <= kMaxSize && !range ? *number : 0;
}

/// Reads "--name value", "--name=value" and "-N value"; names have dashes only.
Options options_of(const std::vector<std::string>& words) {
  Options found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) continue;
    const std::size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');
    name = name.starts_with("--") ? name.substr(2) : short_name(name);
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    if (const std::int64_t number = number_in(value); number > 0) found[name] = number;
  }
  return found;
}

Options batch_options(const std::vector<std::string>& texts) {
  Options all;
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("#SBATCH")) continue;
      const auto words = import::words_of(std::string_view(line).substr(0, line.find(" #")).substr(7));
      for (const auto& [name, value] : options_of({words.begin(), words.end()})) all[name] = value;
    }
  }
  return all;
}

std::int64_t first_of(const Options& options, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const auto found = options.find(name); found != options.end()) return found->second;
  return 0;
}

/// Returns the name of an environment variable that a reason begins with: SLURM_NNODES of "$SLURM_NNODES, which …".
std::string variable_of(const std::string& why) {
  const std::size_t end = why.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", 1);
  return why.starts_with('$') ? why.substr(1, end == std::string::npos ? end : end - 1) : "";
}

/// Returns the first size of a launcher whose value only the machines know.
UnknownSize unknown_size_in(const std::vector<Text>& launcher) {
  for (std::size_t i = 0; i < launcher.size(); ++i) {
    const std::string& word = launcher[i].text;
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string name = word.substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');
    const bool is_size =
        std::any_of(std::begin(kSizes), std::end(kSizes), [&](std::string_view one) { return name == one; });
    const Text& value = equals < word.size() || i + 1 == launcher.size() ? launcher[i] : launcher[i + 1];
    if (!is_size || shell::is_known(value.text)) continue;
    const std::string why = shell::why_unknown(value.text), variable = variable_of(why);
    return {fmt::format("{} follows from {}; say how many GPUs with --gpus N{}", word.substr(0, equals), why,
                        variable.empty() ? "" : fmt::format(", or what it is with --env {}=N", variable)),
            launcher[i].place};
  }
  return {};
}

bool is_torchrun(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.ends_with("torchrun") || word.starts_with("torch.distributed.");
  });
}

}  // namespace

std::map<std::string, std::string> batch_variables(const std::string& text) {
  const Options batch = batch_options({text});
  std::map<std::string, std::string> all;
  const auto set = [&](const char* name, std::int64_t value) {
    if (value > 0) all[name] = std::to_string(value);
  };
  const std::int64_t nodes = first_of(batch, {"nodes"}), each = first_of(batch, {"ntasks-per-node"});
  const std::int64_t tasks = first_of(batch, {"ntasks"}), on_node = first_of(batch, {"gpus-per-node", "gres"});
  set("SLURM_NNODES", nodes), set("SLURM_JOB_NUM_NODES", nodes);
  set("SLURM_NTASKS_PER_NODE", each);
  set("SLURM_NTASKS", tasks > 0 ? tasks : nodes * each), set("SLURM_NPROCS", tasks > 0 ? tasks : nodes * each);
  set("SLURM_GPUS_ON_NODE", on_node);
  set("SLURM_GPUS_PER_NODE", first_of(batch, {"gpus-per-node"}));
  set("SLURM_GPUS", first_of(batch, {"gpus"}));
  return all;
}

void read_launch_size(const std::vector<Text>& launcher, const std::vector<std::string>& texts, JobArguments& to) {
  std::vector<std::string> words;
  for (const Text& word : launcher) words.push_back(word.text);
  const Options given = options_of(words), batch = batch_options(texts);
  const bool torchrun = is_torchrun(words);
  to.is_batch_job = !batch.empty() || std::find(words.begin(), words.end(), "srun") != words.end();
  to.nodes = first_of(given, {"nnodes", "num-nodes", "nodes"});
  if (to.nodes == 0) to.nodes = first_of(batch, {"nodes"});
  to.gpus_per_node = first_of(given, {"nproc-per-node", "num-gpus"});
  const std::vector<std::string> tasks = torchrun
                                             ? std::vector<std::string>{"gpus-per-node", "gres"}
                                             : std::vector<std::string>{"ntasks-per-node", "gpus-per-node", "gres"};
  if (to.gpus_per_node == 0) to.gpus_per_node = first_of(given, tasks);
  if (to.gpus_per_node == 0) to.gpus_per_node = first_of(batch, tasks);
  if (!torchrun && to.nodes * to.gpus_per_node == 0) to.gpus = first_of(given, {"ntasks"});
  if (!torchrun && to.nodes * to.gpus_per_node == 0 && to.gpus == 0) to.gpus = first_of(batch, {"ntasks"});
  if (to.nodes * to.gpus_per_node == 0 && to.gpus == 0) to.unknown_size = unknown_size_in(launcher);
}

}  // namespace manyworlds::experiments::jobs
