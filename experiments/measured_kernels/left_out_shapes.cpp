// How well measured shapes of GEMMs replace one that is left out of their table.
#include <fmt/format.h>

#include <array>
#include <map>

#include "core/compute/gemm_shapes.hpp"
#include "experiments/key_contents/measured_shapes.hpp"
#include "experiments/measured_kernels/kernels.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::compute::GemmShapes;
using core::compute::LeftOut;

/// Times of which more is besides the GEMM tell little of it; script/tabulate_shapes.py leaves them out, too, as it
/// does odd numbers of rows.
constexpr double kLargestShareBeside = 0.25;

/// The shapes of each GPU that has some.
using ShapesByGpu = std::map<std::string, std::shared_ptr<const core::compute::MeasuredShapes>>;

ShapesByGpu shapes_of(const Catalog& catalog) {
  ShapesByGpu all;
  for (const auto& [name, entry] : catalog.entries("gpus")) {
    core::compute::Gpu gpu = gpu_of(entry);
    set_measured_shapes(gpu);
    if (gpu.shapes) all[name] = gpu.shapes;
  }
  return all;
}

}  // namespace

std::vector<MeasuredKernel> left_out_shapes(const std::vector<MeasuredKernel>& rows, const Catalog& catalog) {
  constexpr std::array<const char*, core::compute::kGemmFormats> kFormats{"bf16", "fp8", "nvfp4"};
  constexpr std::array<std::pair<LeftOut, const char*>, 3> kLeftOut{{{LeftOut::shape, "its shape left out"},
                                                                     {LeftOut::same_m, "its m left out"},
                                                                     {LeftOut::same_n, "its n left out"}}};
  const ShapesByGpu by_gpu = shapes_of(catalog);
  std::vector<MeasuredKernel> results;
  for (const MeasuredKernel& row : rows) {
    const auto shapes = by_gpu.find(row.gpu);
    if (row.m == 0 || row.m % 2 != 0 || shapes == by_gpu.end() || !row.unsupported.empty() ||
        row.measured_us < kLongKernelUs)
      continue;
    const auto& table = shapes->second->gemm[static_cast<std::size_t>(row.format)];
    if (!table || row.beside_us > kLargestShareBeside * row.measured_us) continue;
    std::array<GemmShapes::Correction, kLeftOut.size()> corrections;
    bool all_near = true;
    for (std::size_t i = 0; i < kLeftOut.size(); ++i) {
      corrections[i] = table->at(row.m, row.n, row.k, kLeftOut[i].first);
      all_near &= corrections[i].basis != core::compute::TimeBasis::modelled;
    }
    if (!all_near) continue;
    const auto add = [&](double ratio, const char* what) {
      MeasuredKernel& one = results.emplace_back(row);
      one.family = fmt::format("GEMM {}, {}", kFormats[static_cast<std::size_t>(row.format)], what);
      one.predicted_us = row.beside_us + (row.predicted_us - row.beside_us) * ratio;
    };
    add(1, "no shape measured");
    for (std::size_t i = 0; i < kLeftOut.size(); ++i) add(corrections[i].ratio, kLeftOut[i].second);
  }
  return results;
}

}  // namespace manyworlds::experiments::measured
