#include "farm/explain/hardware_sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string_view>

#include "core/base/error.hpp"
#include "experiments/settings/find_key.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/validity/validity.hpp"
#include "farm/explain/variants.hpp"
#include "farm/texts/step_text.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Experiment;
using experiments::Settings;
using Json = nlohmann::ordered_json;

constexpr const char* kFigure = "better";

/// Returns a key without its section: of "cluster.second.gpu.clock_ghz" with ".gpu." "clock_ghz"; empty for others.
std::string_view member_of_gpu(std::string_view key) {
  for (const std::string_view section : {"cluster.gpu.", "cluster.second.gpu.", "cluster.third.gpu."})
    if (key.starts_with(section)) return key.substr(section.size());
  return {};
}
std::string_view member_of_nodes(std::string_view key) {
  for (const std::string_view section : {"cluster.second.", "cluster.third.", "cluster."})
    if (key.starts_with(section) && key.find('.', section.size()) == std::string_view::npos)
      return key.substr(section.size());
  return {};
}

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_time(std::string_view key) {
  return key.ends_with("_us") || key.ends_with("_ns") || key.find("_launch_us_") != std::string_view::npos;
}

/// The rate at which kernels of a library send over a GPU's links.
bool is_wire_rate(std::string_view member) {
  return member.starts_with("library_") && member.ends_with("_wire_gb_per_s");
}

/// What library kernels take besides the links: times, and rates of copies.
bool is_library_cost(std::string_view member) {
  if (!member.starts_with("library_") || is_wire_rate(member)) return false;
  return is_time(member) || member.ends_with("_gb_per_s");
}

/// Which files with a graph tell a figure, so that no setting changes it.
enum class Told : std::uint8_t { by_no_file, by_topologies, by_topologies_and_clusters };

struct FigureInfo {
  const char *name, *description;
  bool (*has)(std::string_view key);
  Told told = Told::by_no_file;
};

constexpr FigureInfo kMemory{"GPU memory", "its size; a step that fits takes as long in more",
                             [](std::string_view key) { return member_of_gpu(key) == "memory_gib"; }};

const std::array kFigures{
    FigureInfo{
        "GPU compute", "the clock of the matrix units and their peak",
        [](std::string_view key) {
          constexpr std::array<std::string_view, 4> names{"matrix_tflops", "fp8_tflops", "fp4_tflops", "clock_ghz"};
          return is_one_of(member_of_gpu(key), names);
        }},
    FigureInfo{"GPU memory bandwidth", "its peak",
               [](std::string_view key) { return member_of_gpu(key) == "memory_gb_per_s"; }},
    FigureInfo{"kernel launch", "what the GPU takes for a kernel besides its work",
               [](std::string_view key) { return member_of_gpu(key) == "launch_us"; }},
    FigureInfo{"host launch", "what the host takes to launch a kernel or a collective",
               [](std::string_view key) {
                 return key == "strategy.stack.host_kernel_us" || key == "strategy.stack.host_collective_us" ||
                        key == "cluster.pipeline_host_us";
               }},
    FigureInfo{"scale-up links", "NVLink, or what connects the GPUs of a node",
               [](std::string_view key) {
                 const std::string_view member = member_of_gpu(key);
                 return member == "scale_up_gb_per_s" || is_wire_rate(member);
               },
               Told::by_topologies},
    FigureInfo{"NICs", "and the fabric's links, whose rates follow from theirs",
               [](std::string_view key) { return member_of_nodes(key) == "nic_gbps"; },
               Told::by_topologies_and_clusters},
    FigureInfo{"link latency", "of scale-up links and of the fabric's",
               [](std::string_view key) {
                 return member_of_gpu(key) == "scale_up_latency_us" || member_of_nodes(key) == "nic_latency_us";
               },
               Told::by_topologies},
    FigureInfo{"collective kernels", "the library's launches, hops and copies, as they were measured",
               [](std::string_view key) { return is_library_cost(member_of_gpu(key)); }},
    FigureInfo{"host link", "PCIe, over which activations are offloaded",
               [](std::string_view key) { return member_of_gpu(key) == "host_gb_per_s"; }},
    kMemory};

/// Returns the settings that a figure has in an experiment.
std::vector<std::string> keys_of(const FigureInfo& figure, const Settings& settings) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : settings)
    if (figure.has(key))
      if (const auto* number = std::get_if<double>(&value); number != nullptr && *number > 0) keys.push_back(key);
  return keys;
}

/// Returns the file that tells a figure of an experiment; empty if its settings do.
std::string file_that_tells(const FigureInfo& figure, const Settings& settings) {
  if (settings.text("topology") != "graph" || figure.told == Told::by_no_file) return "";
  const std::string cluster = settings.text("cluster.fabric");
  if (cluster.empty()) return settings.text("topology.file");
  return figure.told == Told::by_topologies_and_clusters ? cluster : "";
}

/// Throws core::InputError if a setting is outside of its range.
void check_range_of(const std::string& key, const Settings& settings) {
  experiments::import::Node place;
  place.file = std::make_shared<const std::string>("better hardware");
  if (const auto target = experiments::find_key(key, place); target.option != nullptr)
    experiments::import::check_range(settings.at(std::string_view(key)), *target.option, key, place);
}

/// Returns why an experiment cannot have other figures; empty if it can.
std::string problem_with(const Experiment& changed, const std::vector<std::string>& keys) {
  try {
    for (const std::string& key : keys) check_range_of(key, changed.settings);
    experiments::GraphCache graphs;
    if (const auto broken = experiments::find_violation(changed.config(), graphs)) return broken->reason;
    configure(changed, graphs);
    return "";
  } catch (const core::InputError& error) {
    return error.what();
  }
}

bool has_measured_kernels(const Experiment& layout) {
  return layout.config().has_measured_kernels;
}

}  // namespace

void improve(Settings& settings, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const double value = std::get<double>(settings.at(std::string_view(key)));
    settings.set(key, is_time(key) ? value / kImprovement : value * kImprovement);
  }
}

std::vector<std::string> memory_keys(const Settings& settings) {
  return keys_of(kMemory, settings);
}

Sensitivity hardware_sensitivity(const Experiment& layout) {
  Sensitivity result;
  result.layout = layout;
  result.layout.id = 0;
  result.sweep = variants_of(result.layout, "sensitivity", {kFigure, "the figure that is 10 % better"},
                             "an experiment, and the same with one figure of its hardware 10 % better");
  for (const FigureInfo& info : kFigures) {
    HardwareFigure figure{info.name, info.description, keys_of(info, layout.settings), ""};
    const std::string file = file_that_tells(info, layout.settings);
    if (figure.keys.empty() && file.empty()) continue;
    Experiment changed = result.layout;
    improve(changed.settings, figure.keys);
    figure.unknown =
        file.empty() ? problem_with(changed, figure.keys) : fmt::format("{} tells it, and no setting changes it", file);
    if (figure.unknown.empty()) figure.row = add_variant(result.sweep, std::move(changed), info.name);
    result.figures.push_back(std::move(figure));
  }
  return result;
}

std::optional<Improvement> improvement_by(const Sensitivity& sensitivity, const HardwareFigure& figure) {
  if (!figure.row) return std::nullopt;
  const ResultRow before{sensitivity.results.experiments, 0}, after{sensitivity.results.experiments, *figure.row};
  if (!before.ran() || !after.ran()) return std::nullopt;
  const double step_s = before.number("step_time_s");
  Improvement result{after.number("step_time_s"), 0, 0};
  result.change = (result.step_s - step_s) / step_s;
  result.elasticity = (step_s - result.step_s) / step_s / (1 - 1 / kImprovement);
  return result;
}

std::string sensitivity_text(const Sensitivity& sensitivity) {
  const io::Table& table = sensitivity.results.experiments;
  std::vector<std::vector<std::string>> lines{{"figure", "step time", "change", "elasticity", "what it is"}};
  double sum = 0;
  bool any = false;
  for (const HardwareFigure& figure : sensitivity.figures) {
    const auto found = improvement_by(sensitivity, figure);
    std::vector<std::string> line{figure.name, io::kMissing, io::kMissing, io::kMissing, figure.description};
    if (found) {
      line[1] = io::with_si_prefix(found->step_s, "s");
      line[2] = fmt::format("{:+.2f} %", 100 * found->change);
      line[3] = fmt::format("{:.3f}", found->elasticity);
      sum += found->elasticity;
      any = true;
    } else if (!figure.unknown.empty()) {
      line[4] = figure.unknown;
    } else {
      line[4] = fmt::format("{}: {}", table.text_at("status", *figure.row), table.text_at("reason", *figure.row));
    }
    lines.push_back(std::move(line));
  }
  if (any) lines.push_back({"all of these", "", "", fmt::format("{:.3f}", sum), "the sum"});
  std::string text = fmt::format("what hardware that is 10 % better would bring ({})\n", table.text_at("fidelity", 0)) +
                     io::align_columns(lines, {true, false, false, false, true}, "  ");
  if (any)
    text +=
        "elasticity: the share of the step that goes with a figure; what is left of 1 goes with none of them alone, as "
        "it "
        "overlaps with others or is not of the hardware\n";
  if (has_measured_kernels(sensitivity.layout))
    text += "kernels in the table of measured times take as long whatever the figures are\n";
  return text;
}

Json sensitivity_json(const Sensitivity& sensitivity) {
  Json result = Json::array();
  for (const HardwareFigure& figure : sensitivity.figures) {
    Json one{{"figure", figure.name}, {"keys", figure.keys}, {"factor", kImprovement}};
    if (const auto found = improvement_by(sensitivity, figure)) {
      one["step_time_s"] = found->step_s;
      one["step_time_change_share"] = found->change;
      one["elasticity"] = found->elasticity;
    }
    if (!figure.unknown.empty()) one["why_not"] = figure.unknown;
    if (figure.row) one["status"] = sensitivity.results.experiments.text_at("status", *figure.row);
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace manyworlds::farm
