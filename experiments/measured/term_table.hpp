// The meaning of free text in tables of measurements: words.csv maps names of GPUs, models, schedules, … to those of
// the catalog; sources.csv has the software and cluster of each source, and what is assumed of sources that it does not
// name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Returns the letters and digits of `text` in lower case, which is how texts are compared.
std::string normalized_text(std::string_view text);

/// Throws InputError if the table has a column under a name that earlier versions read.
void reject_renamed_columns(const import::CsvRow& row);

/// Software and machines of a source, used unless a row has its own.
struct SourceProfile {
  std::vector<std::string> contains;  // words that describe the source, all of which must occur; none: any source
  std::int64_t from_year = 0;         // first year of the rows
  std::string family;               // with {gpu}, {kind} and {sharding} to be filled in; empty: the name of the source
  std::string stack;                // name in the catalog
  std::int64_t zero = 0;            // ZeRO stage if dp > 1
  bool sequence_parallel = false;   // if tp > 1
  bool overlap_grad_reduce = true;  // gradients are reduced during the backward pass
  std::string sharded_by;           // algorithm of ZeRO 3's gathers and scatters; empty: chosen by the library
  bool experts_over_replicas = false;  // experts are spread over all replicas if a row prints no EP
  std::string recompute;               // if a row has none; empty: the first that fits
  std::string cluster;                 // name in the catalog, for the NICs; empty: one with the GPU
  bool named() const { return !family.empty(); }
};

class TermTable {
 public:
  TermTable();

  /// Returns the meaning of `text` in `column` (gpu, dtype, zero_stage, schedule, recompute, model, style), from the
  /// first row whose word it contains; nothing if there is none.
  std::optional<std::string> meaning(std::string_view column, std::string_view text) const;
  /// Returns the first profile whose words all occur in `text`: a source, its notes and its GPU. The last one fits
  /// every source.
  const SourceProfile& profile(const std::string& text, std::int64_t year) const;

 private:
  struct Term {
    std::string column, contains, value;
  };
  std::vector<Term> terms_;
  std::vector<SourceProfile> profiles_;
};

}  // namespace manyworlds::experiments::measured
