// What a report says, block by block, for whatever it is written in: words, tables, and places for pictures.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/measured/residuals.hpp"
#include "io/ranking/sweep_facts.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::io {

struct Heading {
  std::string text, id;
  int level = 2;
};
struct Words {
  std::string text;
};
/// Figures that a reader looks for first, with what they are.
struct Tiles {
  std::vector<std::pair<std::string, std::string>> figures;  // value, what it is
};
struct Lines {
  std::vector<std::vector<std::string>> lines;  // the first has the titles
  std::vector<bool> left;                       // columns that read from the left
  std::string summary = {};                     // of a table that only says what a picture shows: may be folded away
};
/// A picture; `id` is the same in all reports.
struct Picture {
  enum class Kind { breakdown, pareto, effect, accuracy } kind = Kind::breakdown;
  std::string id, title;
  std::size_t which = 0;  // of Report::fronts or Report::effects
};
/// All experiments, where that can be shown.
struct Everything {};
struct Code {
  std::string title, text;
};
using Block = std::variant<Heading, Words, Tiles, Lines, Picture, Everything, Code>;

/// What is best for what it takes.
struct Front {
  const Column* cost = nullptr;
  std::string title;              // "peak memory"
  std::vector<std::size_t> rows;  // pareto_front()
};

/// How predictions of published steps on a chip the run is about fell, one family of them.
struct FamilyError {
  experiments::measured::Residuals residuals;
  double mean = 0, largest = 0;  // of |measured over predicted - 1|
};

struct Report {
  std::string title;
  const Results* results = nullptr;
  Ranking ranking;
  Goal goal;
  const Column* speed = nullptr;  // tokens/s/GPU; null where the run has no such column
  std::vector<Front> fronts;
  std::vector<AxisEffect> effects;
  std::vector<FamilyError> errors;  // of the chips and kinds in the run, worst first
  std::vector<Block> blocks;
};

/// `results` must outlive the report. The same results make the same report.
Report make_report(const Results& results, const TopOptions& options);

}  // namespace manyworlds::io
