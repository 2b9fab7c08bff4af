#include "farm/search/searched_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::string_view kModel = "model.", kStack = "strategy.stack.", kStrategy = "strategy.";
/// Switches that follow from the layout.
constexpr std::array<std::string_view, 4> kOfLayout{"dispatcher", "dispatcher_sms", "overlap_parameters",
                                                    "overlap_tensor"};
/// Keys of the strategy that no axis of a search has.
constexpr std::array<std::string_view, 7> kFixed{"overlap_grad_reduce", "bucket_parameters", "cp_comm",
                                                 "capacity_factor",     "token_drop",        "pad_to_capacity",
                                                 "expert_gemm"};

bool is_in(const auto& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

SearchedJob searched(const experiments::jobs::Job& job) {
  SearchedJob result;
  result.name = job.name;
  for (const auto& [key, value, place] : job.settings) {
    if (key.starts_with(kModel)) {
      result.model[key.substr(kModel.size())] = value;
    } else if (key.starts_with(kStack)) {
      const std::string name = key.substr(kStack.size());
      if (!is_in(kOfLayout, name)) result.stack[name] = value;
    } else if (is_in(kFixed, key.substr(kStrategy.size()))) {
      result.strategy[key.substr(kStrategy.size())] = value;
    }
  }
  return result;
}

std::string own_rank_text(const SearchFindings& findings, const std::string& file, const io::Results& own) {
  const std::string status = own.experiments.find("status")->text_at(0);
  if (status != "ran")
    return fmt::format("\n{} itself, with the layout that it has: {}\n", file,
                       status == "out_of_memory" ? "does not fit into memory" : status);
  const io::Results& results = findings.packets ? *findings.packets : findings.screened;
  const double gain = throughputs(own).front();
  std::vector<double> others = throughputs(results);
  std::erase_if(others, [](double one) { return std::isnan(one); });
  const auto faster = std::count_if(others.begin(), others.end(), [&](double one) { return one > gain; });
  const double best = others.empty() ? gain : *std::max_element(others.begin(), others.end());
  const std::string place = static_cast<std::size_t>(faster) == others.size()
                                ? fmt::format("slower than all these {}", others.size())
                                : fmt::format("#{} of these {}", faster + 1, others.size());
  return fmt::format("\n{} itself: {:.4g} s a step, {:.1f} tokens/s/GPU: {}; #1 gains {:.1f} %\n", file,
                     own.experiments.find("step_time_s")->number_at(0), gain, place, 100 * (best / gain - 1));
}

}  // namespace manyworlds::farm
