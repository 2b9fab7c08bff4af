// What the operators of published tables of kernels reach on each GPU, from compiled tables; or, for a GPU that is left
// out, what those of its relatives reach.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/compute/attention.hpp"
#include "core/compute/gpu.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/measured_kernels/kernels.hpp"

namespace manyworlds::experiments::measured {

/// TensorRT-LLM's attention operator on one GPU: the rates of its fused kernel, and the other kernels of the operator,
/// which rotate queries and keys, quantise, and write the cache of keys and values.
struct AttentionOperator {
  core::compute::AttentionRates rates;
  double fixed_us = 0, fixed_latent_us = 0;  // launches and small kernels; of latent attention
  double preparation_efficiency = 1;         // share of the memory bandwidth
};

/// What the tables' kernels that only move bytes need to know of a GPU.
struct MemoryOperator {
  double cache_mb = 0;  // second-level cache
  // The scale of a tensor: launches, the rate of a large tensor, and the share of the cache that is read faster.
  double scale_fixed_us = 0, scale_gb_per_s = 0, scale_cached_share = 0, scale_cache_gb_per_s = 1;
};

/// TensorRT-LLM's linear layers and layers of experts on one GPU: what its GEMMs reach, and its other kernels.
struct GemmOperator {
  core::compute::GemmRates rates;
  double fixed_us = 0;
  double quantise_us_per_m = 0;   // of a million elements of the left operand, which is quantised before the GEMM
  double unpermute_us_per_m = 0;  // of a million elements of the experts' outputs, which are added up by token
  double route_us_per_m = 0;      // of a million pairs of a token and one of its experts
};

class Operators {
 public:
  /// With constants of_relatives, those of a GPU are the means of other GPUs of its architecture, or of the next one if
  /// there is no other: what a GPU that nobody measured would be given. Peaks, bandwidths and units stay its own.
  explicit Operators(KernelConstants constants);

  /// Return null if nothing is known of that GPU.
  const GemmOperator* gemm(const std::string& gpu, const std::string& format, const std::string& name) const;
  const AttentionOperator* attention(const std::string& gpu, const std::string& format) const;
  const MemoryOperator* memory(const std::string& gpu) const;

  /// Gives a GPU of the catalog its relatives' rates of kernels that training runs, if constants are of_relatives.
  void lend_rates(core::compute::Gpu& gpu, const std::string& name, const Catalog& catalog) const;

 private:
  void read_gemms();
  void read_attention();
  void read_memory();
  void leave_each_out();

  KernelConstants constants_;
  std::map<std::pair<std::string, std::string>, AttentionOperator> attention_;       // by GPU and format
  std::map<std::tuple<std::string, std::string, std::string>, GemmOperator> gemms_;  // by GPU, format and operator
  std::map<std::string, MemoryOperator> memory_;
};

}  // namespace manyworlds::experiments::measured
