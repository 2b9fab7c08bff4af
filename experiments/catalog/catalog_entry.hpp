// An entry of the catalog: values of options, each with its source.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/options.hpp"

namespace manyworlds::experiments {

/// What a guessed number may be, the value itself included.
struct GuessedRange {
  double low = 0, high = 0;
};

struct SourcedValue {
  core::OptionValue value;
  std::string source;
  std::string certainty;              // read, known, fitted or guess
  std::optional<GuessedRange> range;  // of a guess; none: nobody says how far off it may be
};
/// Returns the number that an option holds; nothing for texts and switches.
std::optional<double> number_of(const core::OptionValue& value);
/// Returns the value as text, with its range if it has one: "1800 (1555 to 2039)".
std::string figure_text(const core::OptionValue& value, const std::optional<GuessedRange>& range);

struct CatalogEntry {
  std::string help;
  /// The GPU or the stack from which another takes fitted constants that it lacks: the same chip, or the most similar
  /// one measured.
  std::string constants_of;
  bool same_chip = false;
  bool has_constants = false;                  // has been given those
  std::vector<std::string> also_called;        // aliases, such as the name of its published files
  std::map<std::string, SourcedValue> values;  // by option; a cluster also has "gpu", the name of its GPU
  std::map<std::string, SourcedValue> recipe;  // of a stack: strategy options that its own recipes set
  std::vector<std::string> schedules;          // of a stack: pipeline schedules that it offers; empty: not known
  std::string library;                         // of a stack: version of the communication library of its time
  std::vector<std::string> versions;           // of a library: the versions that its constants are of
  std::vector<std::string> gpus;               // of a library: the GPUs on which they were measured
  std::int64_t assumed_sequence = 0;           // of a model read from a file: tokens of a sample, unless they are given
  std::string note;                            // of such a model: what was assumed and left out; empty: nothing to say
};

}  // namespace manyworlds::experiments
