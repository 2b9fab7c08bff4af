// The words of `manyworlds run` that ask what the ranks of the step did: --timeline and what belongs to it, --schedule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "farm/cli/command.hpp"
#include "farm/sweep/single_run.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {

void add_recording_words(cxxopts::Options& options);

/// What is asked for, its files begun: what cannot be written is known before anything runs.
class RecordingWords {
 public:
  /// Throws InputError, IoError.
  RecordingWords(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep);

  bool any() const { return timeline_.has_value() || schedule_.has_value(); }
  /// To be recorded, ascending.
  std::vector<std::uint32_t> ranks() const;
  /// Puts the files in place.
  void write(const SingleRun& run);

 private:
  std::string name_;
  std::vector<std::uint32_t> timeline_ranks_, schedule_ranks_;
  std::size_t links_ = 0;
  std::optional<io::AsideFile> timeline_, schedule_;
};

/// Ranks by `stages` (the first of each pipeline stage), `all`, or their numbers with commas between; ascending. Throws
/// InputError in the name of `word`.
std::vector<std::uint32_t> ranks_named(const std::string& text, const core::workload::Strategy& strategy,
                                       const std::string& word);

}  // namespace manyworlds::farm::commands
