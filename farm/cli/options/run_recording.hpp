// The options of `manyworlds run` that record the ranks of a step: --timeline with its dependent options, --schedule
// and --critical-path.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "farm/cli/options/output_file.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/sweep/single_run.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {

void add_recording_options(cxxopts::Options& options);

/// The requested recordings. Their files are created at once, so that a file that cannot be written is reported before
/// the simulation.
class RecordingOptions {
 public:
  /// Throws core::InputError and core::IoError.
  RecordingOptions(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep);

  bool any() const { return timeline_.has_value() || schedule_.has_value() || wants_critical_path_; }
  /// Whether the critical path is asked for, of which all ranks are recorded.
  bool wants_critical_path() const { return wants_critical_path_; }
  /// Returns the ranks to record, in ascending order.
  std::vector<std::uint32_t> ranks() const;
  /// Writes the files and renames them into place. Returns a line for each, with its path and size.
  std::string write(const SingleRun& run);

 private:
  std::string name_;
  std::vector<std::uint32_t> timeline_ranks_, schedule_ranks_, path_ranks_;
  bool wants_critical_path_ = false;
  std::size_t links_ = 0;
  std::string timeline_path_, schedule_path_;
  std::optional<OutputFile> timeline_;
  std::optional<io::AtomicFile> schedule_;
};

/// The ranks of a step, and the first one of each pipeline stage, or of each of the programs that are given.
struct RankNumbers {
  std::uint32_t ranks = 1;
  std::vector<std::uint32_t> firsts;  // ascending
};
RankNumbers rank_numbers(const core::step::Configuration& configuration);

/// Parses ranks: `stages` (the firsts), `all`, or numbers separated by commas. Returns them in ascending order. Throws
/// core::InputError, which names `option`.
std::vector<std::uint32_t> parse_ranks(const std::string& text, const RankNumbers& numbers, const std::string& option);

}  // namespace manyworlds::farm::commands
