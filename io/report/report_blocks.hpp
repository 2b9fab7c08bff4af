// The content of a report as blocks, independent of the output format: text, tables, and places for pictures.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/measured/residuals.hpp"
#include "io/ranking/best_proof.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/ranking/top.hpp"
#include "io/report/report.hpp"

namespace manyworlds::io {

struct Heading {
  std::string text, id;
  int level = 2;
};
struct Paragraph {
  std::string text;
};
/// The key values of a report, with their labels.
struct KeyValues {
  std::vector<std::pair<std::string, std::string>> entries;  // value and label
};
struct TableBlock {
  std::vector<std::vector<std::string>> lines;  // the first line holds the titles
  std::vector<bool> left_aligned;               // columns aligned to the left
  std::string summary = {};                     // the title of a table that repeats a picture and may be collapsed
};
/// A picture; its `id` is the same in all reports.
struct Picture {
  enum class Kind { breakdown, pareto, effect, accuracy, proof } kind = Kind::breakdown;
  std::string id, title;
  std::size_t index = 0;  // index in Report::fronts or Report::effects
};
/// The table of all experiments, in formats that can show it.
struct AllExperiments {};
struct CodeBlock {
  std::string title, text, language = "yaml";
};
using Block = std::variant<Heading, Paragraph, KeyValues, TableBlock, Picture, AllExperiments, CodeBlock>;

/// A Pareto front of throughput against one cost.
struct ParetoFront {
  const Column* cost = nullptr;
  std::string title;              // "peak memory"
  std::vector<std::size_t> rows;  // from pareto_front()
};

/// The prediction errors of one family of published steps on a chip of the run.
struct FamilyError {
  experiments::measured::Residuals residuals;
  double mean = 0, largest = 0;  // of |measured over predicted - 1|
};

struct Report {
  std::string title;
  const Results* results = nullptr;
  Ranking ranking;
  RankingObjective objective;
  const Column* throughput = nullptr;  // tokens/s/GPU; null if the run has no such column
  std::vector<ParetoFront> fronts;
  std::vector<AxisEffect> effects;
  std::vector<FamilyError> errors;  // for the chips and kinds of layout in the run, worst first
  std::optional<BestProof> proof;   // of a sweep that asked for its best
  std::vector<Block> blocks;
};

/// Builds a report; `results` must outlive it. Equal results give equal reports.
Report make_report(const Results& results, const TopOptions& options, const LaunchText& launch = {});

}  // namespace manyworlds::io
