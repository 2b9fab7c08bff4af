// The one row of an answer that has one experiment, and what its step and its memory are made of, as text.
#pragma once

#include <string>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

struct AnswerRow {
  const io::Table& table;
  std::size_t row = 0;

  const io::Column& column(const std::string& name) const;
  double number(const std::string& name) const { return column(name).number_at(row); }
  std::string text(const std::string& name) const { return column(name).text_at(row); }
  bool ran() const { return text("status") == "ran"; }
};

/// "1.25 GiB".
std::string gib_text(double bytes);

/// Within what a measured step is, and why so; empty where nobody knows.
std::string interval_text(const AnswerRow& row);
/// The parts of the step time, of a row that ran.
std::string breakdown_text(const AnswerRow& row);
/// Peak memory and its parts beside what the experiment's GPU has.
std::string memory_text(const AnswerRow& row, const experiments::Experiment& experiment);

}  // namespace manyworlds::farm
