#include "farm/design/design_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/escape.hpp"
#include "core/base/plural.hpp"
#include "core/compute/kernel.hpp"
#include "experiments/silicon/chip_gpu.hpp"
#include "experiments/silicon/yield.hpp"
#include "experiments/tree/scalar.hpp"
#include "io/results/number_format.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::design {
namespace {

namespace silicon = experiments::silicon;
using Json = nlohmann::ordered_json;

constexpr double kMillion = 1e6;

/// A line of the table: a figure of a design with its key in JSON.
struct Figure {
  std::string title, key;
  std::string text;
  double value;
};

/// Kernels as LLMCompass shows them: a GEMM, a softmax and an all-reduce.
struct SampleTimes {
  static constexpr std::int64_t kSize = 8'192, kBytes = 256 << 20;
  double gemm_us = 0, softmax_us = 0, all_reduce_us = 0;
};

SampleTimes sample_times(const Design& design, const DesignJob& job) {
  core::OptionSet values;
  const auto all = job.gpu_options(design.chip, design.appraisal.power);
  for (const core::OptionInfo& info : core::compute::gpu_options().infos())
    if (const auto found = all.find(info.name); found != all.end()) values.insert(*found);
  const core::compute::Gpu gpu = core::compute::gpu_options().make(values);
  const auto us = [&](const core::compute::Kernel& kernel) {
    return static_cast<double>(core::compute::modelled_time(kernel, gpu)) / kMillion;
  };
  constexpr std::int64_t n = SampleTimes::kSize;
  const auto members =
      static_cast<double>(std::get<std::int64_t>(job.sweep().experiments.front().settings.at("cluster.gpus_per_node")));
  return {us(core::compute::gemm("gemm", n, n, n)), us(core::compute::memory_bound("softmax", 2 * 2 * n * n)),
          2 * (members - 1) / members * SampleTimes::kBytes / (scale_up_gb_per_s(design.chip) * 1e3)};
}

std::vector<Figure> figures_of(const Design& design, const DesignJob& job) {
  const silicon::Chip& chip = design.chip;
  const auto& [area, cost, power, edge] = design.appraisal;
  std::vector<Figure> figures;
  const auto add = [&](const char* title, const char* key, double value, int digits = 0, std::string text = {}) {
    if (text.empty()) text = std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : io::kMissing;
    figures.push_back({title, key, text, value});
  };
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  add("SMs in use, of those on the die", "sms", count(chip.sms), 0, fmt::format("{}/{}", chip.used_sms(), chip.sms));
  add("FLOPs per SM and clock", "matrix_flops", chip.matrix_flops);
  add("SRAM per SM, KiB", "sram_kib", chip.sram_kib, 0);
  add("L2 in use, MiB", "used_l2_mib", chip.used_l2_mib(), 1);
  add("HBM stacks", "hbm_stacks", count(chip.hbm_stacks));
  add("scale-up links", "links", count(chip.links));
  add("die, mm2", "die_mm2", area.total(), 1);
  add("  SMs", "sms_mm2", area.sms, 1);
  add("  network between SMs and L2", "network_mm2", area.network, 1);
  add("  L2", "l2_mm2", area.l2, 1);
  add("  HBM interfaces", "hbm_mm2", area.hbm, 1);
  add("  link interfaces", "links_mm2", area.links, 1);
  add("  rest", "rest_mm2", area.rest, 1);
  add("edge for interfaces, mm", "edge_mm", edge, 1,
      fmt::format("{:.1f} of {:.1f}", edge, silicon::edge_of_die_mm(area.total())));
  add("dies per wafer", "dies_per_wafer", cost.dies_per_wafer, 1);
  add("yield with spares", "yield", cost.yield, 3);
  add("die, USD", "die_usd", cost.die_usd);
  add("HBM, USD", "hbm_usd", cost.hbm_usd);
  add("GPU, USD", "usd", cost.total_usd());
  add("power, W", "power_w", power.total());
  add("TFLOP/s, dense 16-bit", "matrix_tflops", matrix_tflops(chip), 1);
  add("HBM, GB/s", "memory_gb_per_s", memory_gb_per_s(chip));
  add("scale-up, GB/s one way", "scale_up_gb_per_s", scale_up_gb_per_s(chip));
  add("GFLOP/s per USD", "gflops_per_usd", matrix_tflops(chip) * 1e3 / cost.total_usd(), 1);
  const SampleTimes times = sample_times(design, job);
  add("GEMM 8192^3 in training, us", "gemm_us", times.gemm_us, 1);
  add("softmax 8192^2, us", "softmax_us", times.softmax_us, 1);
  add("all-reduce 256 MiB in a node, us", "all_reduce_us", times.all_reduce_us, 1);
  add("step, s", "step_time_s", design.step.step_s, 6);
  add("tokens/s/GPU", "tokens_per_s_per_gpu", design.step.ran() ? design.step.tokens_per_s_per_gpu : NAN, 1);
  add("MFU", "mfu", design.step.ran() ? design.step.mfu : NAN, 3);
  add("tokens/s/USD", "tokens_per_s_per_usd",
      design.step.ran() ? design.step.tokens_per_s_per_gpu / cost.total_usd() : NAN, 3);
  add("USD per million tokens", "usd_per_million_tokens", design.usd_per_token * kMillion, 6);
  return figures;
}

std::string table_text(const Study& study, const DesignJob& job) {
  std::vector<std::vector<std::string>> lines{{""}};
  std::vector<bool> left_aligned{true};
  for (const Design& design : study.designs) {
    lines[0].push_back(design.title), left_aligned.push_back(false);
    const std::vector<Figure> figures = figures_of(design, job);
    if (lines.size() == 1)
      for (const Figure& figure : figures) lines.push_back({figure.title});
    for (std::size_t i = 0; i < figures.size(); ++i) lines[i + 1].push_back(figures[i].text);
  }
  return io::align_columns(lines, left_aligned);
}

/// Returns "2.9 % less than" or "1.0 % more than", of two costs.
std::string beside_text(double cost, double other) {
  const double percent = 100 * (cost / other - 1);
  return std::isfinite(percent) ? fmt::format("{:.1f} % {}", std::abs(percent), percent <= 0 ? "less" : "more")
                                : std::string("nothing to compare");
}

std::string verdict_text(const Study& study) {
  const Aim aim = study.file.aim;
  const Design& best = study.chosen();
  std::string text = fmt::format("{} of the best found: ", aim == Aim::step_time ? "step" : "USD per token");
  for (std::size_t i = 0; i < study.designs.size(); ++i)
    if (i != 1)
      text += fmt::format("{}{} than {}", i == 0 ? "" : ", ", beside_text(best.cost(aim), study.designs[i].cost(aim)),
                          core::line_text(study.designs[i].title));
  text += fmt::format("\n{} designs each were searched (seed {}) and drawn, analytically, all within the budgets\n",
                      study.options.evaluations, study.options.seed);
  const Point point = point_of(study.file, best.chip);
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Dimension& dimension = study.file.search[i];
    if (point[i] == dimension.low || point[i] == dimension.value(dimension.steps()))
      text += fmt::format("{} is at the {} of its range, {}: others beyond may be better\n", dimension.name,
                          point[i] == dimension.low ? "least" : "greatest", point[i]);
  }
  return text;
}

std::string errors_text() {
  std::string text;
  for (const silicon::KnownChip& known : silicon::known_chips())
    text += fmt::format("{}{} {:+.1f} % ({} mm2)", text.empty() ? "" : ", ", known.die,
                        100 * (die_area(known.chip, silicon::process_of(known.node)).total() / known.die_mm2 - 1),
                        known.die_mm2);
  return "areas are LLMCompass' (ISCA 2024), off by " + text + "\n";
}

std::string budget_text(const Study& study) {
  std::string text;
  for (const auto& row : silicon::budget_options().rows()) {
    const double limit = std::get<double>(row.get(study.file.budget));
    if (limit > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row.info.name, limit);
  }
  return text.empty() ? "no budget but the mask's 858 mm2 and the edge of the die"
                      : "budget: " + text + ", the mask's 858 mm2 and the edge of the die";
}

}  // namespace

std::string study_text(const Study& study, const DesignJob& job) {
  const DesignFile& file = study.file;
  std::string text = fmt::format("{}: a GPU in {} that trains {} on {} {}\n{}\n\n", core::line_text(file.title),
                                 file.process.node, core::line_text(job.sweep().name), job.gpus(),
                                 core::plural(static_cast<std::uint64_t>(job.gpus()), "GPU"), budget_text(study));
  text += table_text(study, job) + "\n";
  if (study.searched()) text += verdict_text(study);
  for (const Design& design : study.designs) {
    if (!design.over.empty() && &design != &study.market())
      text += fmt::format("{} is over budget: {}\n", design.title, design.over);
    if (!design.step.ran()) text += fmt::format("{} cannot train the job: {}\n", design.title, design.step.why);
    if (const std::string layout = job.layout_text(design.step.layout); design.step.ran() && !layout.empty())
      text += fmt::format("layout of {}: {}\n", core::line_text(design.title), layout);
  }
  if (study.measured.ran() && study.market().step.ran())
    text += fmt::format("{} with its measured kernels takes {:.6f} s, {:+.1f} %\n", job.known().gpu,
                        study.measured.step_s, 100 * (study.measured.step_s / study.market().step.step_s - 1));
  text += fmt::format("steps are of fidelity {}\n", study.options.fidelity) + errors_text();
  text +=
      "USD are costs of production: wafers by CSET (2020), defects by ttm-cas, HBM by LLMCompass; no development, no "
      "margin\n";
  text +=
      "watts are of all peaks at once: HBM 3.92 pJ/bit and links 10 pJ/bit if 'chip' says no others, a FLOP such that "
      "A100 "
      "has its 400 W\n";
  return text + silicon::chip_gpu_assumptions(job.known().gpu) + io::assumed_text(job.sweep().assumed);
}

std::string study_json(const Study& study, const DesignJob& job) {
  Json object{{"name", study.file.title},
              {"job", job.sweep().name},
              {"gpus", job.gpus()},
              {"node", study.file.process.node},
              {"seed", study.options.seed},
              {"evaluations", study.searched() ? study.options.evaluations : 0},
              {"fidelity", study.options.fidelity},
              {"efficiencies_of", job.known().gpu},
              {"designs", Json::array()}};
  for (const Design& design : study.designs) {
    Json one{{"title", design.title},
             {"over_budget", design.over},
             {"layout", job.layout_text(design.step.layout)},
             {"why_not", design.step.why}};
    for (const Figure& figure : figures_of(design, job))
      one[figure.key] = std::isfinite(figure.value) ? Json(figure.value) : Json();
    Json units;
    for (const auto& [key, value] : silicon::chip_options().read(design.chip))
      std::visit([&, name = key](const auto& each) { units[name] = each; }, value);
    one["chip"] = units;
    object["designs"].push_back(one);
  }
  object["measured_step_time_s"] = study.measured.ran() ? Json(study.measured.step_s) : Json();
  return object.dump(1) + "\n";
}

std::string catalog_text(const Study& study, const DesignJob& job) {
  const Design& design = study.chosen();
  const Json quoted(study.file.title);
  std::string text = fmt::format("# A GPU designed by `manyworlds design`.\ngpus:\n  {}:\n    help: {}\n",
                                 quoted.dump(), Json(fmt::format("designed, {}", design.title)).dump());
  text +=
      fmt::format("    source: {}\n    certainty: guess\n    values:\n",
                  Json(fmt::format("manyworlds design; what its units do not say is as {}", job.known().gpu)).dump());
  for (const auto& [key, value] : job.gpu_options(design.chip, design.appraisal.power)) {
    if (key == "name") continue;
    const std::string* word = std::get_if<std::string>(&value);
    text += fmt::format("      {}: {}\n", key,
                        word != nullptr ? Json(*word).dump() : experiments::import::value_text(value));
  }
  return text;
}

}  // namespace manyworlds::farm::design
