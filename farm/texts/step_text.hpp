// The results of a single experiment, one row, and text for its step time and memory.
#pragma once

#include <string>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

struct ResultRow {
  const io::Table& table;
  std::size_t row = 0;

  const io::Column& column(const std::string& name) const;
  double number(const std::string& name) const { return column(name).number_at(row); }
  std::string text(const std::string& name) const { return column(name).text_at(row); }
  bool ran() const { return text("status") == "ran"; }
};

/// Returns "1.25 GiB".
std::string gib_text(double bytes);

/// Returns which guessed figures the interval is wider by, and what they are worth; empty if there are none.
std::string guesses_text(const ResultRow& row);
/// Returns the interval of the step time, its basis and the guesses in it; empty if there is none.
std::string interval_text(const ResultRow& row);
/// Returns the layers of stages that follow from what these weigh; empty if the experiment's split is another.
std::string split_text(const experiments::Experiment& experiment);
/// Returns the tokens per second and the MFU of a row that ran; that they are not known, of programs that do not say
/// their tokens.
std::string throughput_text(const ResultRow& row);
/// Returns the parts of the step time of a row that ran.
std::string breakdown_text(const ResultRow& row);
/// Returns what the time of its kernels is based on.
std::string time_basis_text(const ResultRow& row);
/// Returns the peak memory and its parts beside the memory of the experiment's GPU; that it is not known, of programs
/// that do not say what they allocate.
std::string memory_text(const ResultRow& row, const experiments::Experiment& experiment);

}  // namespace manyworlds::farm
