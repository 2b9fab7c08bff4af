// A small valid sweep that tests bend, and what its reading ends in.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments::testing {

/// Lines of a single valid experiment; keys of it stand on the lines named here.
inline const std::string kSingle =
    "base:\n"                                                                      // 1
    "  model: {layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}\n"  // 2
    "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"       // 3
    "  topology: {rail_optimized: {oversubscription: 1}}\n"                        // 4
    "  transport: dcqcn\n"                                                         // 5
    "  strategy: {tp: 2, pp: 2, micro_batch: 1, global_batch: 8}\n";               // 6

/// Without the assumptions of today, so that what a test does not set is what the option tables say.
inline Sweep read(const std::string& text, const std::vector<std::string>& overrides = {}, ReadOptions options = {}) {
  options.practice = Practice::of_2021;
  return parse_sweep(text, "s.yaml", overrides, Catalog(), options);
}

/// The message that reading `text` ends in; "(no error)" where there is none.
inline std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

/// `text` with the first `from` replaced.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  MANYWORLDS_CHECK(at != std::string::npos, "no '{}' in the text", from);
  return text.replace(at, from.size(), to);
}

inline std::int64_t integer(const Experiment& experiment, const std::string& key) {
  return std::get<std::int64_t>(experiment.settings.at(key));
}
inline std::string text(const Experiment& experiment, const std::string& key) {
  return std::get<std::string>(experiment.settings.at(key));
}

}  // namespace manyworlds::experiments::testing
