// The options with which a verb gives an experiment back as launch flags: --emit and --emit-to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frameworks/emit_targets.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/cli/parsing/command.hpp"
#include "io/log/file.hpp"
#include "io/report/report.hpp"

namespace manyworlds::farm::commands {

/// Adds them; `whose` completes "as launch flags: …", as in "the winner".
void add_emit_options(cxxopts::Options& options, const std::string& whose);

/// What was asked for. The file is created at once, so that one that cannot be written is reported before a simulation.
class EmitOptions {
 public:
  /// Throws core::InputError for an unknown target and for options that go without others, core::IoError.
  explicit EmitOptions(const cxxopts::ParseResult& parsed);

  bool any() const { return target_ != nullptr; }
  /// Returns what is emitted; null if nothing is.
  const experiments::jobs::EmitTarget* target() const { return target_; }
  /// Returns the target and what emit() emitted; nothing before.
  experiments::jobs::OwnEmission emitted() const;
  /// Throws core::InputError if the target refuses all of some layouts of a sweep for one reason, such as a model that
  /// it does not have: before they are simulated.
  void check_some(const experiments::Sweep& sweep, const experiments::jobs::Job* like,
                  const experiments::Catalog& catalog) const;
  /// Emits an experiment, whose text write() writes. Throws core::InputError if the target cannot run it.
  void emit(const experiments::Settings& experiment, const experiments::jobs::Job* like,
            const experiments::Catalog& catalog);
  /// Prints what was emitted, or writes its file; `title` stands above it as comments. Does nothing if nothing was.
  void write(const std::vector<std::string>& title);

 private:
  const experiments::jobs::EmitTarget* target_ = nullptr;
  std::optional<experiments::jobs::EmittedJob> emitted_;
  std::optional<io::AtomicFile> file_;
};

/// Returns what a report says of the launch of its best: the command that prints it, and what was emitted with `title`
/// above it; nothing if nothing was. `like` are the options that name the job it was made from: " --like train.sh".
io::LaunchText launch_text(const std::filesystem::path& run, const experiments::jobs::OwnEmission& emitted,
                           const std::string& like, const std::vector<std::string>& title);

}  // namespace manyworlds::farm::commands
