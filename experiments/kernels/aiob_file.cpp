#include "experiments/kernels/aiob_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "experiments/text/lines.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using core::compute::CostLevel;

constexpr std::string_view kBlanks = " \t\r";
constexpr double kMaxUs = 1e9;
constexpr std::size_t kMaxShownCharacters = 40;

struct Operation {
  const char* name;
  CostLevel level;
  std::vector<std::string_view> names;
};

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{{"Emb", CostLevel::layer, {"embedding"}},
                                          {"layernorm", CostLevel::submodule, {"attention_norm"}},
                                          {"atten_qkv", CostLevel::submodule, {"qkv"}},
                                          {"atten_flash", CostLevel::submodule, {"attention"}},
                                          {"atten_core_qk", CostLevel::submodule, {"attention_scores"}},
                                          {"atten_core_softmax", CostLevel::submodule, {"softmax"}},
                                          {"atten_core_contex", CostLevel::submodule, {"attention_values"}},
                                          {"atten_linear", CostLevel::submodule, {"attention_output"}},
                                          {"layernorm2", CostLevel::submodule, {"mlp_norm"}},
                                          {"mlp_linear_1", CostLevel::submodule, {"mlp_up"}},
                                          {"mlp_gelu", CostLevel::submodule, {"gelu", "swiglu"}},
                                          {"mlp_linear_2", CostLevel::submodule, {"mlp_down"}},
                                          {"layernorm_post", CostLevel::submodule, {"final_norm"}},
                                          {"logit_time", CostLevel::submodule, {"vocabulary"}},
                                          {"param_time", CostLevel::submodule, {}}};
  return all;
}

const Operation& operation_of(std::string_view name, const std::string& file, int line) {
  std::vector<std::string> names;
  for (const Operation& one : operations()) {
    if (one.name == name) return one;
    names.emplace_back(one.name);
  }
  const std::string shown(name.substr(0, kMaxShownCharacters));
  throw InputError(fmt::format("AIOB has no operation '{}' that is known here{}", shown, suggestion(shown, names)),
                   file, line);
}

}  // namespace

std::vector<AiobTime> parse_aiob(std::string_view text, const std::string& name) {
  std::vector<AiobTime> times;
  std::set<std::string, std::less<>> seen;
  int lines = 0;
  const auto check_last = [&] {
    if (!times.empty() && times.back().us == 0)
      throw InputError(fmt::format("'{}' has no time_gpu_avg", times.back().operation), name, times.back().line);
  };
  for_each_line(text, [&](std::string_view whole, int line) {
    lines = line;
    const std::string_view trimmed_line = trimmed(whole, kBlanks);
    const std::size_t colon = trimmed_line.find(':');
    if (trimmed_line.empty() || trimmed_line.starts_with("train_iter:")) return;
    if (colon == std::string_view::npos)
      throw InputError("is no file of AIOB: a line is `operation:` or `time_gpu_avg: microseconds`", name, line);
    const std::string_view key = trimmed_line.substr(0, colon),
                           value = trimmed(trimmed_line.substr(colon + 1), kBlanks);
    if (value.empty() && kBlanks.find(whole.front()) == std::string_view::npos) {
      check_last();
      const Operation& known = operation_of(key, name, line);
      if (!seen.emplace(key).second) throw InputError(fmt::format("'{}' is there twice", known.name), name, line);
      times.push_back({known.name, known.level, known.names, 0, line});
      return;
    }
    if (times.empty()) throw InputError("a time stands before the first operation", name, line);
    if (key != "time_gpu_avg") return;
    const auto us = core::number_in<double>(value);
    if (!us || !(*us > 0) || *us > kMaxUs)
      throw InputError(fmt::format("time_gpu_avg must be a number of microseconds above 0, not '{}'",
                                   value.substr(0, kMaxShownCharacters)),
                       name, line);
    times.back().us = *us;
  });
  check_last();
  if (times.empty()) throw InputError("is no file of AIOB: it has no operation", name, std::max(lines, 1));
  return times;
}

}  // namespace manyworlds::experiments::import
