// What each argument of Megatron-LM means here: the settings that follow from it, or why there are none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/jobs/fate.hpp"

namespace manyworlds::experiments::jobs {

enum class Takes : std::uint8_t { nothing, one, several };  // values

struct MegatronArgument {
  std::string name;  // without its dashes
  Takes takes = Takes::nothing;
  Fate fate = Fate::mapped;
  std::string keys;    // mapped: the settings
  std::string values;  // mapped: "" as given, of a switch its value, "a=b c=d" words; "*": reader.cpp reads it
  std::string absent;  // mapped: the value if it is not given; "": nothing is said
  std::string why;     // mapped: how it is read; refused: "harmless" values may follow in `values`
};

/// Names with one fate, in one text.
struct ArgumentGroup {
  Fate fate;
  std::string why;
  std::string names;
};

/// Returns all arguments, those with settings first.
const std::vector<MegatronArgument>& megatron_arguments();
/// Returns an argument by name; null if there is none.
const MegatronArgument* find_argument(const std::string& name);
const std::vector<ArgumentGroup>& other_arguments();

/// Returns the words of a text, separated by blanks.
std::vector<std::string> words_of(const std::string& text);

/// Returns what a word of `values` ("a=b c=d") stands for; empty if it has no such word.
std::string translated(const std::string& values, const std::string& word);

/// Returns the table as Markdown, for docs/jobs.md.
std::string megatron_markdown();

}  // namespace manyworlds::experiments::jobs
