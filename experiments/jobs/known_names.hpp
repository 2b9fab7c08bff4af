// The keys that a framework's files may have, and what becomes of each here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/jobs/fate.hpp"

namespace manyworlds::experiments::jobs {

struct KnownKey {
  std::string name;  // "training.seq_len"
  Fate fate = Fate::mapped;
  std::string settings;  // mapped: those that follow from it
  std::string why;       // mapped: how it is read; otherwise why it is none
  std::string harmless;  // refused or noted: values that change nothing, between blanks; "" is among them
};

/// Names with one fate, in one text: `name`, or `name=harmless/values`.
struct KeyGroup {
  Fate fate;
  std::string why, names;
};

class KnownKeys {
 public:
  /// `framework` is its name in messages.
  KnownKeys(std::string framework, std::vector<KnownKey> mapped, const std::vector<KeyGroup>& others);

  const std::string& framework() const { return framework_; }
  const std::vector<KnownKey>& all() const { return keys_; }
  /// Returns a key by name; null if there is none.
  const KnownKey* find(const std::string& name) const;
  /// Returns whether keys begin with `name` and a point.
  bool is_section(const std::string& name) const;
  /// Returns "; did you mean 'x'?", or nothing if no name is near.
  std::string near(const std::string& name) const;

  /// Returns the tables of docs/jobs.md.
  std::string markdown() const;

 private:
  std::string framework_;
  std::vector<KnownKey> keys_;
  std::map<std::string, std::size_t> by_name_;
};

}  // namespace manyworlds::experiments::jobs
