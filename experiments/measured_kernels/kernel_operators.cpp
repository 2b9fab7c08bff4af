#include "experiments/measured_kernels/kernel_operators.hpp"

#include "core/compute/gemm.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::compute::GemmRates;
using core::compute::Gpu;
using import::CsvRow;

double real(const CsvRow& row, const char* column) {
  return row.real(column).value_or(0);
}

/// Returns the value of an option, whose column lacks the "gemm_" of its name.
core::OptionValue value_of(const CsvRow& row, const core::OptionInfo& info) {
  import::Node node;
  node.kind = import::Node::Kind::scalar;
  node.text = row.text(std::string_view(info.name).substr(std::string_view("gemm_").size()));
  node.file = std::make_shared<const std::string>(row.header().file);
  node.line = row.line();
  return import::read_value(node, info, info.name);
}

using Names = std::vector<std::string>;
/// Returns the GPUs whose constants a GPU is given when it is left out: others of its architecture, for A100 Hopper's.
/// Those of memory-bound kernels were measured on other GPUs.
Names relatives_of(const std::string& gpu) {
  static const std::map<std::string, Names> relatives{{"a100_80", {"h100_sxm", "h200_sxm"}},
                                                      {"h100_sxm", {"h200_sxm"}},
                                                      {"h200_sxm", {"h100_sxm"}},
                                                      {"b200_hgx", {"gb200_nvl72", "gb300_nvl72"}},
                                                      {"gb200_nvl72", {"b200_hgx", "gb300_nvl72"}},
                                                      {"gb300_nvl72", {"b200_hgx", "gb200_nvl72"}},
                                                      {"a100_pcie_80", {"a100_pcie_40", "v100_32"}},
                                                      {"a100_pcie_40", {"a100_pcie_80", "v100_32"}},
                                                      {"v100_32", {"a100_pcie_80", "a100_pcie_40"}}};
  const auto found = relatives.find(gpu);
  return found == relatives.end() ? Names{} : found->second;
}

/// Returns the mean of numbers that `read` takes from each operator.
template <class Operator, class Read>
double mean(const std::vector<const Operator*>& some, const Read& read) {
  double sum = 0;
  for (const Operator* one : some) sum += read(*one);
  return sum / static_cast<double>(some.size());
}

GemmOperator mean_of(const std::vector<const GemmOperator*>& some, const GemmOperator&) {
  GemmOperator result = *some.front();  // tiles and splits are those of one
  for (const auto& row : core::compute::gemm_rate_options().rows())
    if (row.info.kind == core::OptionInfo::Kind::real)
      row.set(result.rates, mean(some, [&](const GemmOperator& one) { return std::get<double>(row.get(one.rates)); }));
  for (double GemmOperator::*member : {&GemmOperator::fixed_us, &GemmOperator::quantise_us_per_m,
                                       &GemmOperator::unpermute_us_per_m, &GemmOperator::route_us_per_m})
    result.*member = mean(some, [&](const GemmOperator& one) { return one.*member; });
  return result;
}

AttentionOperator mean_of(const std::vector<const AttentionOperator*>& some, const AttentionOperator&) {
  using core::compute::AttentionRates;
  AttentionOperator result;
  for (double AttentionRates::*member :
       {&AttentionRates::matrix_efficiency, &AttentionRates::vector_ops, &AttentionRates::tile_us,
        &AttentionRates::wide_tile_us, &AttentionRates::window_us})
    result.rates.*member = mean(some, [&](const AttentionOperator& one) { return one.rates.*member; });
  for (double AttentionOperator::*member :
       {&AttentionOperator::fixed_us, &AttentionOperator::fixed_latent_us, &AttentionOperator::preparation_efficiency})
    result.*member = mean(some, [&](const AttentionOperator& one) { return one.*member; });
  return result;
}

MemoryOperator mean_of(const std::vector<const MemoryOperator*>& some, const MemoryOperator& own) {
  MemoryOperator result;
  for (double MemoryOperator::*member : {&MemoryOperator::scale_fixed_us, &MemoryOperator::scale_gb_per_s,
                                         &MemoryOperator::scale_cached_share, &MemoryOperator::scale_cache_gb_per_s})
    result.*member = mean(some, [&](const MemoryOperator& one) { return one.*member; });
  result.cache_mb = own.cache_mb;  // a datasheet has it
  return result;
}

const std::string& gpu_in(const std::string& key) {
  return key;
}
std::string& gpu_in(std::string& key) {
  return key;
}
template <class Key>
auto& gpu_in(Key& key) {
  return std::get<0>(key);
}

/// Replaces each operator by the mean of those of its GPU's relatives; those without a relative go.
template <class Operators>
void replace_by_means(Operators& operators) {
  const Operators own = std::exchange(operators, {});
  for (const auto& [key, one] : own) {
    std::vector<const typename Operators::mapped_type*> others;
    for (const std::string& relative : relatives_of(gpu_in(key))) {
      auto place = key;
      gpu_in(place) = relative;
      if (const auto found = own.find(place); found != own.end()) others.push_back(&found->second);
    }
    if (!others.empty()) operators[key] = mean_of(others, one);
  }
}

}  // namespace

Operators::Operators(KernelConstants constants) : constants_(constants) {
  read_gemms();
  read_attention();
  read_memory();
  if (constants == KernelConstants::of_relatives) leave_each_out();
}

void Operators::read_gemms() {
  const core::OptionTable<GemmRates>& rates = core::compute::gemm_rate_options();
  for (const CsvRow& row : import::parse_csv(compiled_table("gemm_operators"), "gemm_operators.csv").rows) {
    core::OptionSet values;
    for (const core::OptionInfo& info : rates.infos()) values[info.name] = value_of(row, info);
    gemms_[{std::string(row.text("gpu")), std::string(row.text("format")), std::string(row.text("operator"))}] = {
        rates.make(values), real(row, "fixed_us"), real(row, "quantise_us_per_m"), real(row, "unpermute_us_per_m"),
        real(row, "route_us_per_m")};
  }
}

void Operators::read_attention() {
  for (const CsvRow& row : import::parse_csv(compiled_table("attention_operators"), "attention_operators.csv").rows) {
    AttentionOperator& one = attention_[{std::string(row.text("gpu")), std::string(row.text("format"))}];
    one.rates = {real(row, "matrix_efficiency"), real(row, "vector_ops"), real(row, "tile_us"),
                 real(row, "wide_tile_us"), real(row, "window_us")};
    one.fixed_us = real(row, "fixed_us");
    one.fixed_latent_us = real(row, "fixed_latent_us");
    one.preparation_efficiency = real(row, "preparation_efficiency");
  }
}

void Operators::read_memory() {
  for (const CsvRow& row : import::parse_csv(compiled_table("memory_operators"), "memory_operators.csv").rows)
    memory_[std::string(row.text("gpu"))] = {real(row, "cache_mb"), real(row, "scale_fixed_us"),
                                             real(row, "scale_gb_per_s"), real(row, "scale_cached_share"),
                                             real(row, "scale_cache_gb_per_s")};
}

void Operators::leave_each_out() {
  replace_by_means(gemms_);
  replace_by_means(attention_);
  replace_by_means(memory_);
}

const GemmOperator* Operators::gemm(const std::string& gpu, const std::string& format, const std::string& name) const {
  const auto found = gemms_.find({gpu, format, name});
  return found == gemms_.end() ? nullptr : &found->second;
}

const AttentionOperator* Operators::attention(const std::string& gpu, const std::string& format) const {
  const auto found = attention_.find({gpu, format});
  return found == attention_.end() ? nullptr : &found->second;
}

const MemoryOperator* Operators::memory(const std::string& gpu) const {
  const auto found = memory_.find(gpu);
  return found == memory_.end() ? nullptr : &found->second;
}

void Operators::lend_rates(Gpu& gpu, const std::string& name, const Catalog& catalog) const {
  if (constants_ == KernelConstants::own) return;
  const auto rate = [&](const std::string& owner, const char* option) {
    return std::get<double>(catalog.entries("gpus").at(owner).values.at(option).value);
  };
  double sum = 0;
  const Names relatives = relatives_of(name);
  for (const std::string& relative : relatives) sum += rate(relative, "memory_efficiency");
  if (!relatives.empty()) gpu.memory_efficiency = sum / static_cast<double>(relatives.size());
  const std::string chip = name == "a100_pcie_80" ? "a100_80" : name;  // whose GEMMs were measured
  if (const GemmOperator* one = gemm(chip, "bf16", "gemm")) gpu.gemm.front() = one->rates;
  // Attention of training was measured on three GPUs: each time the mean of the other two.
  if (name == "b200_hgx") {
    gpu.cudnn_forward_efficiency =
        (rate("h100_sxm", "cudnn_forward_efficiency") + rate("a100_80", "flash2_forward_efficiency")) / 2;
    gpu.cudnn_backward_efficiency =
        (rate("h100_sxm", "cudnn_backward_efficiency") + rate("a100_80", "flash2_backward_efficiency")) / 2;
  } else if (chip == "a100_80") {
    gpu.flash2_forward_efficiency =
        (rate("h100_sxm", "cudnn_forward_efficiency") + rate("b200_hgx", "cudnn_forward_efficiency")) / 2;
    gpu.flash2_backward_efficiency =
        (rate("h100_sxm", "cudnn_backward_efficiency") + rate("b200_hgx", "cudnn_backward_efficiency")) / 2;
  }
}

}  // namespace manyworlds::experiments::measured
