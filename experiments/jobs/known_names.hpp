// The names that a framework's jobs have - keys, arguments, settings - and what becomes of each here: one table for all
// frameworks, which their readers ask and docs/jobs.md shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::jobs {

/// What becomes of something that a job's file says.
enum class Fate : std::uint8_t {
  mapped,      // settings follow from it
  irrelevant,  // it changes neither time nor memory of a step
  carried,     // the same, and it is the model's own: what is emitted has it again
  noted,       // it may change them, and is not modelled: the answer says so
  refused,     // it changes them, and is not modelled
};

enum class Takes : std::uint8_t { nothing, one, several };  // words behind an argument

struct KnownName {
  std::string name;         // "training.seq_len"; "num-layers", without its dashes; ending in *: all that begin so
  std::string means = {};   // mapped: the settings that follow from it, or the argument of Megatron-LM that it is
  std::string why = {};     // mapped: how it is read, "": as `values` and `absent` say; otherwise why nothing follows
  std::string values = {};  // mapped: "": as given; what a switch sets; "a=b c=d": words; "*": its reader knows
  std::string absent = {};  // mapped: the value if it is not given; "": nothing is said
  Fate fate = Fate::mapped;
  Takes takes = Takes::nothing;  // of arguments
  std::string harmless = {};     // noted or refused: words that change nothing as its value

  bool is_harmless(std::string_view value) const;
};

/// Names with one fate, in one text: `name`, `name=`, `name=harmless/values` or `name+`, which are those of switches,
/// of what takes a value, and of what takes several.
struct NameGroup {
  Fate fate;
  std::string why, names;
};

/// What a table's names are: keys or arguments, which mean settings, or a framework's own settings, which mean
/// arguments of Megatron-LM.
enum class NameKind : std::uint8_t { key, argument, setting };

class KnownNames {
 public:
  /// `framework` is its name in messages.
  KnownNames(std::string framework, NameKind kind, std::vector<KnownName> mapped, const std::vector<NameGroup>& others);

  const std::string& framework() const { return framework_; }
  const std::vector<KnownName>& all() const { return names_; }
  /// Returns what is known of a name; null if nothing is.
  const KnownName* find(const std::string& name) const;
  /// Returns the first entry that ends in * and has the beginning of `name`; null if there is none.
  const KnownName* find_beginning(const std::string& name) const;
  /// Returns whether names begin with `name` and a point.
  bool is_section(const std::string& name) const;
  /// Returns "; did you mean 'x'?", or nothing if neither a name of the table nor one of `more` is near.
  std::string near(const std::string& name, const std::vector<std::string>& more = {}) const;

  /// Returns the tables of docs/jobs.md.
  std::string markdown() const;

 private:
  std::string framework_;
  NameKind kind_;
  std::vector<KnownName> names_;
  std::map<std::string, std::size_t> by_name_;
};

/// Returns what a word stands for in "a=b c=d"; empty if it is not there.
std::string translated(std::string_view values, std::string_view word);

/// Returns the words that stand for something in "a=b c=d", for messages: "a, c".
std::string known_words(std::string_view values);

}  // namespace manyworlds::experiments::jobs
