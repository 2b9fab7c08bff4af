#include "experiments/jobs/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Returns a value as YAML: lists as they are, others quoted if they are no plain words.
std::string yaml_value(const std::string& value) {
  const bool plain = value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+") ==
                     std::string::npos;
  if (plain || value.starts_with('[')) return value;
  std::string quoted = "'";
  for (const char c : value) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

void fail_at(const Place& place, const std::string& what) {
  throw core::InputError(what, place.file ? *place.file : "", place.line);
}

void fail_without_gpus(const Job& job) {
  const UnknownSize& size = job.unknown_size;
  if (size.what.empty()) throw core::InputError("it does not say how many GPUs it runs on; give --gpus N", job.file);
  fail_at(size.place.file ? size.place : Place{std::make_shared<const std::string>(job.file), 0}, size.what);
}

std::string JobFile::ending() const {
  return std::filesystem::path(path).extension().string();
}

std::string document_of(const Job& job, const std::string& cluster) {
  std::vector<std::string> lines(1);
  std::string last;
  for (const JobSetting& one : job.settings) {
    const std::string entry = fmt::format("{}: {}, ", one.key, yaml_value(one.value));
    if (!one.place.file || *one.place.file != job.file || one.place.line < 1) {
      last += entry;
      continue;
    }
    const auto line = static_cast<std::size_t>(one.place.line);
    lines.resize(std::max(lines.size(), line));
    lines[line - 1] += entry;
  }
  std::string text = fmt::format("{{name: {}, base: {{cluster: {}, strategy: {{stack: {{like: {}}}}}, ",
                                 yaml_value(job.name), cluster, job.stack);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i];
  return text + last + "}}\n";
}

std::vector<std::string> explanation(const Job& job) {
  std::vector<std::string> lines{fmt::format("{}: {}; {} of its arguments mapped, {} without effect on time and memory",
                                             job.file, job.kind, job.mapped, job.irrelevant)};
  for (const std::string& note : job.notes) lines.push_back(note);
  return lines;
}

}  // namespace manyworlds::experiments::jobs
