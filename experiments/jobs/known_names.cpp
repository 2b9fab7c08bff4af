#include "experiments/jobs/known_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

KnownKey key_of_group(const KeyGroup& group, std::string_view word) {
  KnownKey key;
  key.fate = group.fate;
  key.why = group.why;
  const std::size_t equals = word.find('=');
  key.name = word.substr(0, equals);
  if (equals == std::string_view::npos) return key;
  key.harmless = word.substr(equals + 1);
  std::replace(key.harmless.begin(), key.harmless.end(), '/', ' ');
  return key;
}

}  // namespace

KnownKeys::KnownKeys(std::string framework, std::vector<KnownKey> mapped, const std::vector<KeyGroup>& others)
    : framework_(std::move(framework)), keys_(std::move(mapped)) {
  for (const KeyGroup& group : others)
    for (const std::string_view word : import::words_of(group.names, " ")) keys_.push_back(key_of_group(group, word));
  for (std::size_t i = 0; i < keys_.size(); ++i) by_name_.emplace(keys_[i].name, i);
}

const KnownKey* KnownKeys::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &keys_[found->second];
}

bool KnownKeys::is_section(const std::string& name) const {
  const auto found = by_name_.lower_bound(name + ".");
  return found != by_name_.end() && found->first.starts_with(name + ".");
}

std::string KnownKeys::near(const std::string& name) const {
  std::vector<std::string> names;
  for (const KnownKey& one : keys_) names.push_back(one.name);
  const std::string text = suggestion(name, names);
  return text.starts_with("; did") ? text : "";  // "known are …" with two hundred names would not help
}

std::string KnownKeys::markdown() const {
  std::string text = "| key | settings | meaning |\n|---|---|---|\n";
  for (const KnownKey& one : keys_)
    if (one.fate == Fate::mapped) text += fmt::format("| `{}` | `{}` | {} |\n", one.name, one.settings, one.why);
  const std::pair<Fate, const char*> others[] = {{Fate::irrelevant, "without effect on time and memory"},
                                                 {Fate::noted, "not modelled, said in the answer"},
                                                 {Fate::refused, "refused"}};
  for (const auto& [fate, title] : others) {
    std::vector<std::pair<std::string, std::string>> rows;  // why, names
    for (const KnownKey& one : keys_) {
      if (one.fate != fate) continue;
      if (rows.empty() || rows.back().first != one.why) rows.emplace_back(one.why, "");
      rows.back().second += fmt::format("{}`{}`", rows.back().second.empty() ? "" : " ", one.name);
    }
    if (!rows.empty()) text += fmt::format("\n| {} | keys |\n|---|---|\n", title);
    for (const auto& [why, names] : rows) text += fmt::format("| {} | {} |\n", why, names);
  }
  return text;
}

}  // namespace manyworlds::experiments::jobs
