#include "farm/slurm/batch_scripts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::string_view kSweepScript = "sweep.sh", kMergeScript = "merge.sh";

bool is_placeholder(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
}

/// Checks a text for a #SBATCH line, where Slurm replaces % and a quotation mark ends a word. Returns it.
const std::string& require_plain(const std::string& value, const char* what) {
  if (value.find_first_of("\"\\%") != std::string::npos || core::line_text(value) != value)
    throw core::InputError(fmt::format(
        "{} '{}': a batch script cannot name it; give one without \", \\, % and control characters", what, value));
  return value;
}

std::string job_name(const std::string& sweep) {
  std::string name = sweep;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '-';
  return name;
}

/// Returns the lines that follow the # of the template's line.
std::string sbatch_lines(const BatchJob& job, bool merge) {
  std::string lines;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty())
      lines += fmt::format("{}SBATCH --{}={}", lines.empty() ? "" : "\n#", option, require_plain(value, option));
  };
  if (!merge) {
    add("nodes", std::to_string(job.shards > 0 ? 1 : job.nodes));
    add("ntasks-per-node", std::to_string(job.tasks_per_node));
    if (job.threads > 1) add("cpus-per-task", std::to_string(job.threads));
    if (job.shards > 0) add("array", fmt::format("1-{}", job.shards));
  }
  add("time", job.time);
  add("partition", job.partition);
  add("account", job.account);
  return lines;
}

std::string_view find_template(std::string_view name) {
  for (const BatchTemplate& one : batch_templates())
    if (one.name == name) return one.text;
  MANYWORLDS_CHECK(false, "no template {}", name);
}

}  // namespace

std::string fill_template(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string filled;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '@' ? text.find('@', at + 1) : std::string_view::npos;
    const std::string_view name = end == std::string_view::npos ? "" : text.substr(at + 1, end - at - 1);
    if (!is_placeholder(name)) {
      filled += text[at];
      continue;
    }
    const auto known =
        std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
    MANYWORLDS_CHECK(known != values.end(), "nothing for @{}@ of a template", name);
    filled += known->second;
    at = end;
  }
  return filled;
}

std::vector<BatchScript> batch_scripts(const BatchJob& job) {
  const auto fill = [&](std::string_view name, bool merge) {
    return BatchScript{
        std::string(name),
        fill_template(find_template(name), {{"NAME", job_name(job.name)},
                                            {"SCRIPTS", core::shell_quoted(job.scripts)},
                                            {"LOGS", require_plain(job.scripts, "the scripts' folder")},
                                            {"OUTPUT", job.shards > 0 && !merge ? "%x-%A_%a.out" : "%x-%j.out"},
                                            {"MARGIN_S", std::to_string(job.margin_s)},
                                            {"SBATCH", sbatch_lines(job, merge)},
                                            {"COMMAND", core::shell_line(job.command)},
                                            {"PROGRAM", core::shell_quoted(job.program)},
                                            {"RUN", core::shell_quoted(job.run)},
                                            {"SHARDS", std::to_string(std::max(job.shards, 1u))}})};
  };
  std::vector<BatchScript> scripts{fill(kSweepScript, false)};
  if (job.shards > 0) scripts.push_back(fill(kMergeScript, true));
  return scripts;
}

}  // namespace manyworlds::farm
