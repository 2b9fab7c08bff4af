// The keys that a job's file gives, each with its place, as the values that they must be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"
#include "experiments/jobs/known_names.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::jobs {

/// A key with its sections: "training.seq_len". A text of a value may have unknown parts (shell::unknown()).
struct GivenKey {
  std::string name;
  import::Node value;
};

/// Returns the keys of nested mappings, down to those that are known. Throws InputError for an unknown one, with the
/// nearest name.
std::vector<GivenKey> flattened(const import::Node& root, const KnownNames& known);

class GivenKeys {
 public:
  /// The last of several keys of one name counts.
  GivenKeys(const KnownNames& known, const std::vector<GivenKey>& keys);

  const import::Node* find(const std::string& name) const;
  /// Returns whether the key is given and not null.
  bool given(const std::string& name) const;
  /// Return the value, or `otherwise` if the key is not given or null. Throw InputError for a value of another kind.
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  std::int64_t count(const std::string& name, std::int64_t otherwise, std::int64_t minimum = 0) const;
  bool flag(const std::string& name, bool otherwise) const;
  /// The texts of a list; of a text its words between commas.
  std::vector<std::string> words(const std::string& name, const std::vector<std::string>& otherwise = {}) const;

  /// Returns what a word stands for in "a=b c=d"; throws InputError at `name` with the known ones.
  std::string translated(const std::string& name, const std::string& word, const std::string& values) const;

  Place place(const std::string& name) const;
  [[noreturn]] void fail(const std::string& name, const std::string& what) const;

  /// Counts the keys by their fate, refuses what is not modelled unless its value changes nothing, and adds a note
  /// about what is said only.
  void check(Job& job) const;

 private:
  const import::Node* given_value(const std::string& name) const;
  const import::Node* known_value(const std::string& name) const;

  const KnownNames& known_;
  std::map<std::string, import::Node> values_;
};

}  // namespace manyworlds::experiments::jobs
