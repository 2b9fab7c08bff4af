#include "farm/search/symbolic_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/memory/footprint.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/plan/naming_experiment.hpp"
#include "farm/system/slices.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using core::step::SentBytes;
using Json = nlohmann::ordered_json;

std::int64_t tensor_bytes_of(const core::step::Configuration& configuration) {
  const core::memory::Footprint f = core::memory::peak(configuration.model, configuration.strategy, configuration.gpu);
  return f.weights + f.gradients + f.optimizer + f.gathered + f.activations + f.recomputed + f.working + f.logits;
}

/// Returns the settings of an experiment that axes give it: those that all listed layouts have, or all others.
std::string settings_text(const experiments::Sweep& sweep, std::size_t experiment, const std::vector<bool>& is_common,
                          bool common) {
  std::vector<std::string> words;
  for (std::size_t axis = 0; axis < sweep.columns.size(); ++axis) {
    if (is_common[axis] != common) continue;
    std::string name = sweep.columns[axis].name;
    for (const std::string prefix : {"strategy.", "stack."})
      if (name.starts_with(prefix)) name = name.substr(prefix.size());
    words.push_back(name + "=" + experiments::import::value_text(sweep.experiments[experiment].axes[axis]));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<bool> common_axes(const experiments::Sweep& sweep, const SymbolicOrder& order, std::size_t rows) {
  std::vector<bool> result(sweep.columns.size(), rows > 1);
  for (std::size_t axis = 0; axis < sweep.columns.size(); ++axis)
    for (std::size_t row = 1; row < rows; ++row)
      if (sweep.experiments[order.layouts[row].experiment].axes[axis] !=
          sweep.experiments[order.layouts[0].experiment].axes[axis])
        result[axis] = false;
  return result;
}

/// Returns gigabytes inside nodes and between them: "12.3+0.4".
std::string sent_text(const SentBytes& sent) {
  if (sent.inside == 0 && sent.between == 0) return "-";
  return fmt::format("{:.3g}+{:.3g}", sent.inside / 1e9, sent.between / 1e9);
}

std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i)
      row += i == 1 ? fmt::format("{}{:<{}}", i > 0 ? "  " : "", line[i], widths[i])
                    : fmt::format("{}{:>{}}", i > 0 ? "  " : "", line[i], widths[i]);
    text += row + "\n";
  }
  return text;
}

std::string rule_text(const SymbolicOrder& order) {
  const core::step::Balance& b = order.balance;
  return fmt::format(
      "No hardware was read. Volumes are of one step of the rank with the most work; GB are sent inside a node of {} + "
      "between nodes.\n"
      "Ordered by weight: a 16-bit FLOP counts 1, a byte of memory {:g}, a byte sent inside a node {:g}, between nodes "
      "{:g},\na microsecond of the software's host {:g} (launches); of a kernel its FLOPs or its bytes count, "
      "whichever is "
      "more, and the pipeline waits as its schedule says.\n"
      "Unknown, and not in the order: efficiencies, latencies, contention, and {}.\n",
      order.gpus_per_node, b.flops_per_memory_byte, b.flops_per_byte, b.flops_per_byte * b.node_factor, b.flops_per_us,
      order.memory_bytes ? "what libraries and drivers take of a GPU's memory"
                         : "which layouts fit (--max-memory SIZE)");
}

Json sent_json(const SentBytes& sent) {
  return {{"inside_bytes", sent.inside}, {"between_bytes", sent.between}};
}

}  // namespace

SymbolicOrder symbolic_order(const experiments::Sweep& sweep, const core::step::Balance& balance,
                             std::optional<std::int64_t> memory_bytes) {
  SymbolicOrder order;
  order.balance = balance;
  order.memory_bytes = memory_bytes;
  std::vector<WeighedLayout> all(sweep.experiments.size());
  for_each_slice(all.size(), [&](std::size_t begin, std::size_t end) {
    experiments::ConfigReader reader;
    for (std::size_t i = begin; i < end; ++i)
      naming_experiment(sweep, sweep.experiments[i], [&] {
        const core::step::Configuration& one =
            reader.read(sweep.experiments[i].settings, sweep.experiments[i].inputs).configuration;
        all[i] = {i, step_volumes(one.model, one.strategy, one.gpus_per_node, balance), tensor_bytes_of(one)};
      });
  });
  if (!all.empty()) order.gpus_per_node = sweep.experiments.front().config().configuration.gpus_per_node;
  if (memory_bytes)
    order.too_large = std::erase_if(all, [&](const WeighedLayout& one) { return one.tensor_bytes > *memory_bytes; });
  std::stable_sort(all.begin(), all.end(),
                   [](const WeighedLayout& a, const WeighedLayout& b) { return a.volumes.weight < b.volumes.weight; });
  order.layouts = std::move(all);
  return order;
}

std::string symbolic_text(const experiments::Sweep& sweep, const SymbolicOrder& order, std::size_t k) {
  const std::size_t rows = std::min(k, order.layouts.size());
  std::string text;
  if (rows > 0) {
    const std::vector<bool> common = common_axes(sweep, order, rows);
    if (const std::string all = settings_text(sweep, order.layouts[0].experiment, common, true); !all.empty())
      text += fmt::format("all: {}\n", all);
    std::vector<std::vector<std::string>> lines{{"#", "layout", "weight", "FLOPs", "tensor GB", "context GB",
                                                 "experts GB", "replicas GB", "stages GB", "bubble", "tensors"}};
    for (std::size_t row = 0; row < rows; ++row) {
      const WeighedLayout& one = order.layouts[row];
      const core::step::StepVolumes& v = one.volumes;
      lines.push_back({std::to_string(row + 1), settings_text(sweep, one.experiment, common, false),
                       fmt::format("{:.3f}", v.weight / order.layouts[0].volumes.weight),
                       io::with_si_prefix(v.flops, ""), sent_text(v.tensor), sent_text(v.context), sent_text(v.experts),
                       sent_text(v.replicas), sent_text(v.stages), fmt::format("{:.1f} %", 100 * v.bubble_share),
                       fmt::format("{:.1f} GiB", static_cast<double>(one.tensor_bytes) / (1 << 30))});
    }
    text += aligned(lines);
  }
  text += fmt::format("{} layouts", order.layouts.size());
  if (order.too_large > 0)
    text += fmt::format(", and {} whose tensors take more than the memory given", order.too_large);
  return text + "\n" + rule_text(order);
}

nlohmann::ordered_json symbolic_json(const experiments::Sweep& sweep, const SymbolicOrder& order, std::size_t k) {
  const core::step::Balance& b = order.balance;
  Json rows = Json::array();
  for (std::size_t row = 0; row < std::min(k, order.layouts.size()); ++row) {
    const WeighedLayout& one = order.layouts[row];
    const core::step::StepVolumes& v = one.volumes;
    Json settings = Json::object();
    for (std::size_t axis = 0; axis < sweep.columns.size(); ++axis)
      std::visit([&](const auto& value) { settings[sweep.columns[axis].name] = value; },
                 sweep.experiments[one.experiment].axes[axis]);
    rows.push_back({{"layout", settings},
                    {"weight_flops", v.weight},
                    {"flops", v.flops},
                    {"memory_bytes", v.memory_bytes},
                    {"launches", v.launches},
                    {"tensor", sent_json(v.tensor)},
                    {"context", sent_json(v.context)},
                    {"experts", sent_json(v.experts)},
                    {"replicas", sent_json(v.replicas)},
                    {"stages", sent_json(v.stages)},
                    {"bubble_share", v.bubble_share},
                    {"tensor_bytes", one.tensor_bytes}});
  }
  return {{"name", sweep.name},
          {"balance",
           {{"flops_per_memory_byte", b.flops_per_memory_byte},
            {"flops_per_byte", b.flops_per_byte},
            {"node_factor", b.node_factor},
            {"flops_per_us", b.flops_per_us}}},
          {"gpus_per_node", order.gpus_per_node},
          {"layouts", order.layouts.size()},
          {"too_large", order.too_large},
          {"order", rows}};
}

}  // namespace manyworlds::farm
