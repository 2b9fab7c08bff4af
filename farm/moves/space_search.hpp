// A search of a space: its sweep, which lists and simulates the best by their lower bounds, and where that does not
// prove the best, rounds of moves from there. Each round is a run of its own, which the same command line resumes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/sweep/space.hpp"
#include "farm/moves/moves_report.hpp"
#include "farm/moves/walk.hpp"
#include "farm/sweep/sweep_run.hpp"

namespace manyworlds::farm {

/// The document of a space, which is read again for every round.
struct SpaceDocument {
  std::string text, file;
  std::vector<std::string> set;  // arguments of --set
  const experiments::Catalog& catalog;

  experiments::Space space() const { return {text, file, set, catalog}; }
};

class SpaceSearch {
 public:
  /// `sweep` asks for the best of the space; `points` are those of its experiments, or empty if it lists all that are
  /// valid. The document's catalog outlives the search.
  SpaceSearch(RunOptions options, SpaceDocument document, experiments::Sweep sweep,
              std::vector<experiments::Space::Point> points, bool share, const WalkLimits& limits, Zygote& zygote);

  /// Returns the exit code. findings() has what was found, also if the search was stopped; nothing before the sweep
  /// has ended, or if none of it fits.
  int run();
  const std::optional<MoveFindings>& findings() const { return findings_; }

 private:
  int run_in(const std::filesystem::path& directory, const std::string& job, std::optional<io::Results>& results);
  void begin(const io::Results& results);
  int move();
  int run_round(Walk& walk);
  void note_best(const io::Results& results, const experiments::Sweep& sweep, std::size_t row, const std::string& run);
  void check_bound() const;
  std::filesystem::path search_path(const std::string& name) const {
    return options_.directory.string() + ".search/" + name;
  }

  RunOptions options_;
  SpaceDocument document_;
  experiments::Sweep sweep_;
  std::vector<experiments::Space::Point> points_;
  bool share_;
  WalkLimits limits_;
  Zygote& zygote_;
  std::vector<double> values_;  // minimised objectives of the sweep's experiments; infinity without a result
  std::optional<MoveFindings> findings_;
  Position best_;  // where its best is
};

}  // namespace manyworlds::farm
