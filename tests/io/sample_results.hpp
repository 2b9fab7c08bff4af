// A small run's results, made up by hand: twelve experiments of which three did not run.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::io::testing {

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Of no experiment: the columns that every results file has.
inline Results empty_results() {
  Results results;
  for (const auto& [name, type] : required_columns()) {
    Column& column = results.experiments.columns.emplace_back();
    column.name = name;
    if (type == ElementType::real) column.values = std::vector<double>();
    if (type == ElementType::text) column.values = std::vector<std::string>();
  }
  return results;
}

/// Experiment i has tp = 1, 2, 4, 8 in turn; the last of every four ran out of memory; the others take (i % 3 + 1)
/// seconds and train 12000 tokens / s / GPU over that.
inline Results sample_results() {
  std::vector<std::int64_t> ids, tp, memory;
  std::vector<std::string> topology, status;
  std::vector<double> step, tokens, mfu, forward, backward, exposed;
  for (std::int64_t i = 0; i < 12; ++i) {
    const bool ran = i % 4 != 3;
    ids.push_back(i);
    tp.push_back(std::int64_t{1} << (i % 4));
    topology.push_back(i < 6 ? "rail_optimized" : "fat_tree 1:4 – überbucht");
    status.push_back(ran ? "ran" : "out_of_memory");
    memory.push_back((ran ? 40 + i : 100) * (std::int64_t{1} << 30));
    const double seconds = static_cast<double>(i % 3 + 1);
    step.push_back(ran ? seconds : kNone);
    tokens.push_back(ran ? 12000 / seconds : kNone);
    mfu.push_back(ran ? 0.5 / seconds : kNone);
    forward.push_back(ran ? seconds * 0.25 : kNone);
    backward.push_back(ran ? seconds * (i < 6 ? 0.5 : 0.25) : kNone);
    exposed.push_back(ran ? seconds * (i < 6 ? 0.25 : 0.5) : kNone);
  }
  Results results;
  results.spec = "name: sample\nbase: {}\n";
  results.axis_names = {"strategy.tp", "topology"};
  results.experiments.columns = {{"id", "", "number in spec order", ids},
                                 {"strategy.tp", "", "tensor parallel size", tp},
                                 {"topology", "", "fabric", topology},
                                 {"status", "", "what became of it", status},
                                 {"step_time_s", "s", "time of one training step", step},
                                 {"tokens_per_s_per_gpu", "tokens/s", "throughput of one GPU", tokens},
                                 {"mfu", "", "model FLOPs utilisation", mfu},
                                 {"memory_peak_bytes", "bytes", "largest peak over ranks", memory},
                                 {"forward_s", "s", "forward pass", forward},
                                 {"backward_s", "s", "backward pass", backward},
                                 {"exposed_dp_s", "s", "data-parallel communication not hidden", exposed}};
  results.excluded.columns = {{"strategy.tp", "", "tensor parallel size", std::vector<std::int64_t>{}},
                              {"reserve", "", "a real", std::vector<double>{}},
                              {"rule", "", "the rule that left it out", std::vector<std::string>{}}};
  results.kernels.columns = {{"key", "", "digest", std::vector<std::string>{"00ff", "01aa"}},
                             {"result_ps", "ps", "duration", std::vector<std::int64_t>{1'000, 1'234'567'890'123}}};
  results.provenance = {{"ranks", std::int64_t{4}}, {"cpu_s", 1.5}, {"host", std::string("node7")}};
  return results;
}

}  // namespace manyworlds::io::testing
