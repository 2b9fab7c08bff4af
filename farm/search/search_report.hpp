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

/// How the best layouts of a screening are simulated: packet by packet, or as fluids where there is no time for
/// packets.
enum class Simulation : std::uint8_t { packets, fluids };
/// Returns "packet by packet" or "as fluids".
const char* words_of(Simulation simulation);

/// Returns the experiments of `rows` as a sweep of its own, with the same axes; `simulated_part` with the fidelity of
/// `simulation`.
experiments::Sweep part_of(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows);
experiments::Sweep simulated_part(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows,
                                  Simulation simulation);

struct SearchFindings {
  std::size_t layouts = 0;  // of the space, and those that fit into memory
  std::size_t fitting = 0;
  io::Results screened;                  // analytic results: of all layouts, or of those whose bounds leave them open
  std::string screening;                 // run directory of the screening
  std::optional<io::Results> simulated;  // of the best screened layouts, in order of their analytic throughput
  std::string simulated_run;             // run directory of these
  Simulation simulation = Simulation::packets;  // of these
  SearchStatus search_status;                   // of these
};

/// Returns the results that answer the search: simulated ones, or those of the screening if there are none.
const io::Results& final_results(const SearchFindings& findings);

/// Says on one line what was found, of which at least one layout ran, and whether its step time is a bound.
std::string found_title(const SearchFindings& findings, const std::string& name);

std::string search_text(const SearchFindings& findings, std::int64_t k);
nlohmann::ordered_json search_json(const SearchFindings& findings, std::int64_t k);

/// Returns Spearman's coefficient of two equally long lists; ties get their mean rank. NaN for fewer than two values.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace manyworlds::farm
