#include "farm/slurm/batch_scripts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::string_view kSweep = "sweep.sh", kMerge = "merge.sh";

bool is_word(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
}

/// What may stand in a #SBATCH line, where Slurm replaces % and a quotation mark ends a word.
const std::string& plain(const std::string& word, const char* what) {
  if (word.find_first_of("\"\\%") != std::string::npos || core::line_text(word) != word)
    throw core::InputError(fmt::format(
        "{} '{}': a batch script cannot name it; give one without \", \\, % and control characters", what, word));
  return word;
}

std::string name_of_job(const std::string& sweep) {
  std::string name = sweep;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '-';
  return name;
}

/// Lines behind the # of the template's line.
std::string sbatch_lines(const BatchJob& job, bool merge) {
  std::string lines;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty())
      lines += fmt::format("{}SBATCH --{}={}", lines.empty() ? "" : "\n#", option, plain(value, option));
  };
  if (!merge) {
    add("nodes", std::to_string(job.shards > 0 ? 1 : job.nodes));
    add("ntasks-per-node", std::to_string(job.tasks_per_node));
    if (job.shards > 0) add("array", fmt::format("1-{}", job.shards));
  }
  add("time", job.time);
  add("partition", job.partition);
  add("account", job.account);
  return lines;
}

std::string_view template_called(std::string_view name) {
  for (const BatchTemplate& one : batch_templates())
    if (one.name == name) return one.text;
  MANYWORLDS_CHECK(false, "no template {}", name);
}

}  // namespace

std::string filled_in(std::string_view text, const std::vector<std::pair<std::string, std::string>>& words) {
  std::string made;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '@' ? text.find('@', at + 1) : std::string_view::npos;
    const std::string_view name = end == std::string_view::npos ? "" : text.substr(at + 1, end - at - 1);
    if (!is_word(name)) {
      made += text[at];
      continue;
    }
    const auto known = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.first == name; });
    MANYWORLDS_CHECK(known != words.end(), "nothing for @{}@ of a template", name);
    made += known->second;
    at = end;
  }
  return made;
}

std::vector<BatchScript> batch_scripts(const BatchJob& job) {
  const auto fill = [&](std::string_view name, bool merge) {
    return BatchScript{
        std::string(name),
        filled_in(template_called(name), {{"NAME", name_of_job(job.name)},
                                          {"SCRIPTS", core::shell_quoted(job.scripts)},
                                          {"LOGS", plain(job.scripts, "the scripts' folder")},
                                          {"OUTPUT", job.shards > 0 && !merge ? "%x-%A_%a.out" : "%x-%j.out"},
                                          {"MARGIN_S", std::to_string(job.margin_s)},
                                          {"SBATCH", sbatch_lines(job, merge)},
                                          {"COMMAND", core::shell_line(job.command)},
                                          {"PROGRAM", core::shell_quoted(job.program)},
                                          {"RUN", core::shell_quoted(job.run)},
                                          {"SHARDS", std::to_string(std::max(job.shards, 1u))}})};
  };
  std::vector<BatchScript> scripts{fill(kSweep, false)};
  if (job.shards > 0) scripts.push_back(fill(kMerge, true));
  return scripts;
}

}  // namespace manyworlds::farm
