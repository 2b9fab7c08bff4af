// The report of a network-only simulation as text, JSON, and CSV tables of completions and links.
#pragma once

#include <string>
#include <vector>

#include "core/network/flows/astra_sim.hpp"
#include "farm/net/network_only.hpp"

namespace manyworlds::farm {

/// A run and its inputs; `shape` is null for flows.
struct NetworkReport {
  const NetworkRun& run;
  const core::network::Graph& graph;
  const core::collective::Shape* shape = nullptr;
  core::network::Fidelity fidelity = core::network::Fidelity::packet;
  std::string calibrated = "no";  // origin of the library's calibration: describe_calibration()
  core::network::LinkFailures failures = {};
  std::string tuner = {};  // what of a tuner's table chose; empty without one

  std::string json() const;
  std::string text() const;
  std::string links_csv() const;  // links that carried packets, in the graph's order
  bool analytic() const { return fidelity == core::network::Fidelity::analytic; }
};

std::string flows_csv(const NetworkRun& run, const std::vector<experiments::import::Flow>& flows);
std::string members_csv(const NetworkRun& run);

/// ASTRA-sim's times for a collective; `packets` is the packet simulation of the same collective, or null.
struct AstraSimReport {
  const core::collective::Shape& shape;
  const core::network::AstraSimPath& path;
  const core::network::AstraSimTimes& times;
  const NetworkRun* packets = nullptr;

  std::string json() const;
  std::string text() const;
};

}  // namespace manyworlds::farm
