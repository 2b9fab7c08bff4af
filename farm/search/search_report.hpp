// What a search found: the best layouts by packets, what is left open, and how the screening ordered them.
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

/// Rows of a run by tokens per second and GPU, best first; ties in the order of ids. Rows that did not run are left
/// out.
std::vector<std::size_t> by_throughput(const io::Results& results);

/// Their tokens per second and GPU; NaN of a row that did not run.
std::vector<double> throughputs(const io::Results& results, const std::vector<std::size_t>& rows);
std::vector<double> throughputs(const io::Results& results);

/// The experiments of those rows, packet by packet: a sweep of its own with the same axes.
experiments::Sweep packet_sweep(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows);

struct SearchFindings {
  io::Results screened;                // of analytic fidelity
  std::string screening;               // its run directory
  std::optional<io::Results> packets;  // of the first of them in order of throughput
  Settlement settlement;               // of these
};

std::string search_text(const SearchFindings& findings, std::int64_t k);
nlohmann::ordered_json search_json(const SearchFindings& findings, std::int64_t k);

/// Spearman's coefficient of two lists of figures of the same things; ties share their mean rank. NaN below two.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace manyworlds::farm
