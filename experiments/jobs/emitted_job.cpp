#include "experiments/jobs/emitted_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/escape.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Returns a job's value as settings have it: [a, b] is a+b, and no list is none.
std::string as_setting(std::string value) {
  if (!value.starts_with('[') || !value.ends_with(']')) return value;
  value = value.substr(1, value.size() - 2);
  std::erase(value, ' ');
  std::replace(value.begin(), value.end(), ',', '+');
  return value.empty() ? "none" : value;
}

bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char *end_a = nullptr, *end_b = nullptr;
  const double number_a = std::strtod(a.c_str(), &end_a), number_b = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0' && number_a == number_b;
}

}  // namespace

std::string text_of(const Settings& experiment, const std::string& key) {
  const auto found = experiment.find(key);
  return found == experiment.end() ? "" : import::value_text(found->second);
}

JobChanges::JobChanges(const Settings& experiment, const Job* like) : experiment_(experiment), like_(like) {}

std::string JobChanges::of(const std::vector<std::string>& keys) const {
  std::string reason;
  if (like_ == nullptr) return reason;
  for (const std::string& key : keys) {
    const auto said = std::find_if(like_->settings.rbegin(), like_->settings.rend(),
                                   [&](const JobSetting& one) { return one.key == key; });
    const std::string value = text_of(experiment_, key);
    if (said == like_->settings.rend() || value.empty() || same(as_setting(said->value), value)) continue;
    const std::string file = std::filesystem::path(said->place.file ? *said->place.file : like_->file).filename();
    reason += fmt::format("{}was {} {}: {} is {}", reason.empty() ? "" : "; ", said->value,
                          said->place.line > 0 ? fmt::format("in {}:{}", file, said->place.line)
                                               : fmt::format("as {} does not say", file),
                          key, value);
  }
  return core::line_text(reason);
}

std::vector<std::string> JobChanges::untold(const std::string& text) const {
  std::vector<std::string> changes;
  std::set<std::string> keys;
  if (like_ != nullptr)
    for (const JobSetting& one : like_->settings) keys.insert(one.key);
  for (const std::string& key : keys)
    if (std::string change = of({key}); !change.empty() && text.find(fmt::format(": {} is ", key)) == std::string::npos)
      changes.push_back(std::move(change));
  return changes;
}

std::string commented(const std::string& line, const std::string& comment) {
  return comment.empty() ? line : fmt::format("{}  # {}", line, comment);
}

}  // namespace manyworlds::experiments::jobs
