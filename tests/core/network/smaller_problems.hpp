// A drawn problem on which something fails, made smaller for as long as it still fails, and printed.
#pragma once

#include <exception>
#include <sstream>
#include <string>

#include "tests/core/network/network_problems.hpp"

namespace manyworlds::tests {

/// `fails(problem)` stays true: without flows, with half of their bytes, at time 0.
template <class Fails>
Problem reduced(Problem problem, Fails fails) {
  const auto takes = [&](auto change) {
    Problem smaller = problem;
    change(smaller.arrivals);
    std::stable_sort(smaller.arrivals.begin(), smaller.arrivals.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    if (!fails(smaller)) return false;
    problem = std::move(smaller);
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = problem.arrivals.size(); i-- > 0;)
      again |= takes([i](auto& arrivals) { arrivals.erase(arrivals.begin() + static_cast<std::ptrdiff_t>(i)); });
    for (std::size_t i = 0; i < problem.arrivals.size(); ++i) {
      if (problem.arrivals[i].at > 0) again |= takes([i](auto& arrivals) { arrivals[i].at = 0; });
      while (problem.arrivals[i].bytes > 0 && takes([i](auto& arrivals) { arrivals[i].bytes /= 2; })) again = true;
    }
  }
  return problem;
}

inline std::ostream& operator<<(std::ostream& out, const Problem& problem) {
  const Transport& t = problem.transport;
  out << t.kind << " routing " << static_cast<int>(t.routing) << " acks " << static_cast<int>(t.acks) << " fabric "
      << static_cast<int>(t.fabric) << " packets " << t.payload_bytes << "+" << t.header_bytes << " acks of "
      << t.ack_bytes << " window " << t.window_bytes << " pfc " << t.pfc_xoff_bytes << "/" << t.pfc_xon_bytes
      << " queue " << t.queue_bytes << " ecn " << t.ecn_kmin_bytes << "/" << t.ecn_kmax_bytes << " seed " << t.seed;
  for (const auto& arrival : problem.arrivals) {
    out << "\n  at " << arrival.at << " flow " << arrival.id.collective << "." << arrival.id.transfer << " of "
        << arrival.bytes << " B over";
    for (const std::uint32_t link : problem.routes[arrival.route])
      out << " " << link << " (" << problem.links[link].bits_per_second << " b/s, " << problem.links[link].latency_ps
          << " ps)";
  }
  return out;
}

/// What `fault_of` says of a problem ("" if all holds; what it throws counts), of the smallest one found, and that.
template <class FaultOf>
std::string smallest_fault(const Problem& problem, FaultOf fault_of) {
  const auto fault = [&](const Problem& smaller) {
    try {
      return std::string(fault_of(smaller));
    } catch (const std::exception& error) {
      return std::string("throws: ") + error.what();
    }
  };
  if (fault(problem).empty()) return "";
  const Problem small = reduced(problem, [&](const Problem& smaller) { return !fault(smaller).empty(); });
  std::ostringstream out;
  out << fault(small) << "\n" << small;
  return out.str();
}

}  // namespace manyworlds::tests
