// The findings of a search: the best layouts by packet simulation, those that may still be faster, and the order of the
// screening.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "farm/search/search_rounds.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Returns the rows of a run by tokens per second and GPU, best first; ties in the order of ids. Rows that did not run
/// are left out.
std::vector<std::size_t> by_throughput(const io::Results& results);

/// Returns their tokens per second and GPU; NaN for a row that did not run.
std::vector<double> throughputs(const io::Results& results, const std::vector<std::size_t>& rows);
std::vector<double> throughputs(const io::Results& results);

/// Returns the experiments of `rows` as a sweep of its own, with the same axes; `packet_sweep` with packet fidelity.
experiments::Sweep part_of(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows);
experiments::Sweep packet_sweep(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows);

struct SearchFindings {
  std::size_t layouts = 0;  // of the space, and those that fit into memory
  std::size_t fitting = 0;
  io::Results screened;                // analytic results: of all layouts, or of those whose bounds leave them open
  std::string screening;               // run directory of the screening
  std::optional<io::Results> packets;  // of the best screened layouts, in order of their analytic throughput
  std::string packet_run;              // run directory of these
  SearchStatus search_status;          // of the packet results
};

/// Returns the results that answer the search: of packets, or of the screening if there are none.
const io::Results& final_results(const SearchFindings& findings);

std::string search_text(const SearchFindings& findings, std::int64_t k);
nlohmann::ordered_json search_json(const SearchFindings& findings, std::int64_t k);

/// Returns Spearman's coefficient of two equally long lists; ties get their mean rank. NaN for fewer than two values.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace manyworlds::farm
