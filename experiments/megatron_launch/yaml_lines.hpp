// Arguments of Megatron-LM as lines of YAML, under Megatron-LM's own names of what they set.
#pragma once

#include <string>
#include <vector>

#include "experiments/megatron_launch/megatron_launch.hpp"

namespace manyworlds::experiments::jobs {

/// A key of YAML, its value, and the settings that it stands for.
struct YamlLine {
  std::string name, value;
  std::vector<std::string> keys;
};

/// Returns what an argument is in YAML: {"tensor_model_parallel_size", "4"}, {"add_bias_linear", "false"}.
YamlLine yaml_line(const LaunchArgument& argument);

/// Returns lines below `indent` blanks, with comments where the job of --like differs.
std::string yaml_text(const std::vector<YamlLine>& lines, int indent, const JobChanges& changes);

}  // namespace manyworlds::experiments::jobs
