#include "experiments/phases/refusals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments::phases {
namespace {

using import::Node;

/// Returns the words of a text that can be names of options.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else if (!word.empty()) {
      words.insert(word);
      word.clear();
    }
  }
  return words;
}

std::string option_of(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

/// A key that the user wrote, and where.
struct WrittenKey {
  std::string key;
  Node place;
};

class Refusal {
 public:
  Refusal(const Phase& phase, const WrittenSettings& written, const std::vector<DerivedSettings>& derived)
      : phase_(phase), written_(written), derived_(derived) {}

  [[noreturn]] void fail(const RuleViolations& violations) const {
    const RuleViolation& first = violations.broken.front();
    const WrittenKey at = guilty_key(first);
    std::vector<std::string> others;
    for (std::size_t i = 1; i < violations.broken.size(); ++i) others.push_back(violations.broken[i].rule);
    at.place.fail(fmt::format("phase '{}': '{}' violates rule {}: {}{}{}", phase_.name, at.key, first.rule,
                              first.reason, origins_of(words_of(first.reason)),
                              others.empty() ? "" : fmt::format("; it violates {} too", fmt::join(others, ", "))));
  }

 private:
  bool is_derived(const std::string& key) const {
    for (const DerivedSettings& one : derived_)
      if (one.origin_of(key) != nullptr) return true;
    return false;
  }

  WrittenKey guilty_key(const RuleViolation& violation) const {
    if (!is_derived(violation.key) && written_.say(violation.key))
      return {violation.key, written_.place_of({violation.key}, phase_.place)};
    if (const auto named = named_key(words_of(violation.values))) return *named;
    if (const auto named = named_key(words_of(violation.reason))) return *named;
    return {violation.key, is_derived(violation.key) ? phase_.place : section_of(violation.key)};
  }

  /// Returns the key that the user wrote last of those whose options are among these words.
  std::optional<WrittenKey> named_key(const std::set<std::string>& words) const {
    for (auto places = written_.places().rbegin(); places != written_.places().rend(); ++places)
      for (const auto& [key, place] : *places)
        if (key.find('.') != std::string::npos && words.contains(option_of(key)) && !is_derived(key))
          return WrittenKey{key, place};
    return std::nullopt;
  }

  /// Returns the place of the nearest section around a key that the user wrote.
  const Node& section_of(std::string key) const {
    for (std::size_t dot = key.rfind('.'); dot != std::string::npos; dot = key.rfind('.')) {
      key.resize(dot);
      if (written_.say(key)) return written_.place_of({key}, phase_.place);
    }
    return phase_.place;
  }

  /// Returns what is derived of the options among these words, and from what.
  std::string origins_of(const std::set<std::string>& words) const {
    std::vector<std::string> origins;
    for (const DerivedSettings& one : derived_)
      for (const import::Entry& entry : one.node().entries)
        if (words.contains(option_of(entry.key)))
          origins.push_back(
              fmt::format("{} {} follows from {}", option_of(entry.key), entry.value.text, *one.origin_of(entry.key)));
    return origins.empty() ? "" : fmt::format("; {}", fmt::join(origins, ", "));
  }

  const Phase& phase_;
  const WrittenSettings& written_;
  const std::vector<DerivedSettings>& derived_;
};

}  // namespace

void refuse(const Experiment& refused, const Phase& phase, const WrittenSettings& written,
            const std::vector<DerivedSettings>& derived) {
  GraphCache graphs;
  const RuleViolations violations = find_violations(refused.config(), graphs);
  MANYWORLDS_CHECK(!violations.broken.empty(), "phase '{}' is refused without a rule", phase.name);
  Refusal(phase, written, derived).fail(violations);
}

}  // namespace manyworlds::experiments::phases
