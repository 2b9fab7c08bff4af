#include "experiments/jobs/known_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

KnownName name_of_group(const NameGroup& group, std::string_view word) {
  const std::size_t end = std::min(word.find_first_of("=+"), word.size());
  KnownName one{std::string(word.substr(0, end)), "", group.why};
  one.fate = group.fate;
  if (end == word.size()) return one;
  one.takes = word[end] == '=' ? Takes::one : Takes::several;
  one.harmless = word.substr(end + 1);
  std::replace(one.harmless.begin(), one.harmless.end(), '/', ' ');
  return one;
}

std::string meaning(const KnownName& one) {
  if (!one.why.empty()) return one.why;
  const std::string& text = one.values.empty() || one.values == "*" ? "as given" : one.values;
  if (one.absent.empty()) return text;
  return fmt::format("{}; {}{}", text, one.takes == Takes::nothing ? "without it " : "", one.absent);
}

/// How the tables call names and what they mean.
struct Titles {
  const char *name, *meaning;
  const char *dashes, *meaning_dashes;
};

Titles titles_of(NameKind kind) {
  switch (kind) {
    case NameKind::key:
      return {"key", "settings", "", ""};
    case NameKind::argument:
      return {"argument", "settings", "--", ""};
    case NameKind::setting:
      return {"setting", "argument of Megatron-LM", "", "--"};
  }
  return {};
}

}  // namespace

bool KnownName::is_harmless(std::string_view value) const {
  const auto words = import::words_of(harmless, " ");
  return std::find(words.begin(), words.end(), value) != words.end();
}

KnownNames::KnownNames(std::string framework, NameKind kind, std::vector<KnownName> mapped,
                       const std::vector<NameGroup>& others)
    : framework_(std::move(framework)), kind_(kind), names_(std::move(mapped)) {
  for (const NameGroup& group : others)
    for (const std::string_view word : import::words_of(group.names, " ")) names_.push_back(name_of_group(group, word));
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!names_[i].name.ends_with('*')) by_name_.emplace(names_[i].name, i);
}

const KnownName* KnownNames::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &names_[found->second];
}

const KnownName* KnownNames::find_beginning(const std::string& name) const {
  for (const KnownName& one : names_)
    if (one.name.ends_with('*') && name.starts_with(std::string_view(one.name).substr(0, one.name.size() - 1)))
      return &one;
  return nullptr;
}

bool KnownNames::is_section(const std::string& name) const {
  const auto found = by_name_.lower_bound(name + ".");
  return found != by_name_.end() && found->first.starts_with(name + ".");
}

std::string KnownNames::near(const std::string& name, const std::vector<std::string>& more) const {
  std::vector<std::string> known;
  for (const KnownName& one : names_) known.push_back(one.name);
  known.insert(known.end(), more.begin(), more.end());
  const std::string text = suggestion(name, known);
  return text.starts_with("; did") ? text : "";  // "known are …" with hundreds of names would not help
}

std::string KnownNames::markdown() const {
  const Titles titles = titles_of(kind_);
  std::string text = fmt::format("| {} | {} | meaning |\n|---|---|---|\n", titles.name, titles.meaning);
  for (const KnownName& one : names_) {
    if (one.fate != Fate::mapped) continue;
    const std::string means = one.means.empty() ? "" : fmt::format("`{}{}`", titles.meaning_dashes, one.means);
    text += fmt::format("| `{}{}` | {} | {} |\n", titles.dashes, one.name, means, meaning(one));
  }
  const std::pair<Fate, const char*> others[] = {{Fate::irrelevant, "without effect on time and memory"},
                                                 {Fate::carried, "without effect, carried into what is emitted"},
                                                 {Fate::noted, "not modelled, said in the answer"},
                                                 {Fate::refused, "refused"}};
  for (const auto& [fate, title] : others) {
    std::vector<std::pair<std::string, std::string>> rows;  // why, names
    for (const KnownName& one : names_) {
      if (one.fate != fate) continue;
      if (rows.empty() || rows.back().first != one.why) rows.emplace_back(one.why, "");
      rows.back().second += fmt::format("{}`{}`", rows.back().second.empty() ? "" : " ", one.name);
    }
    if (!rows.empty()) text += fmt::format("\n| {} | {}s |\n|---|---|\n", title, titles.name);
    for (const auto& [why, names] : rows) text += fmt::format("| {} | {} |\n", why, names);
  }
  return text;
}

std::string translated(std::string_view values, std::string_view word) {
  for (const std::string_view pair : import::words_of(values, " "))
    if (pair.substr(0, pair.find('=')) == word) return std::string(pair.substr(pair.find('=') + 1));
  return "";
}

std::string known_words(std::string_view values) {
  std::vector<std::string_view> words = import::words_of(values, " ");
  for (std::string_view& word : words) word = word.substr(0, word.find('='));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace manyworlds::experiments::jobs
