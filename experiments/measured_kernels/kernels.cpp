#include "experiments/measured_kernels/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/compute/gemm.hpp"
#include "experiments/kernels/kernel_samples.hpp"
#include "experiments/measured/term_table.hpp"
#include "experiments/measured_kernels/kernel_operators.hpp"
#include "experiments/text/unsupported_row.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::compute::AttentionRates;
using core::compute::Dtype;
using core::compute::Gpu;
using core::compute::Kernel;
using core::compute::KernelClass;
using import::CsvRow;
using import::read_supported;
using import::UnsupportedRow;

constexpr std::int64_t kMaxSize = 1 << 20;  // of each dimension: a product of three still has 63 bits
constexpr std::int64_t kMaxRows = std::int64_t{1} << 32, kMaxExperts = 1 << 16;
constexpr double kMaxOperations = 1e17;
constexpr double kPsPerUs = static_cast<double>(core::kMicrosecond);

/// The share of a tile's fixed time that latent attention has, whose values are narrower than its keys.
constexpr double kLatentTile = 0.7;
/// Heads of latent attention as the tables measure it (DeepSeek-V3), and the bytes of its compressed input.
constexpr std::int64_t kLatentWidth = 192, kLatentValueWidth = 128, kLatentHeadBytes = 384, kLatentTokenBytes = 2'304;

/// Fixed time of an element-wise kernel as NeuSight measured it, with PyTorch's dispatch.
constexpr double kDispatchUs = 17;
/// Rows that a compute unit works on at once in PyTorch's norm and softmax, and the ratio to the cache at which they
/// are read again whole; a softmax of few columns keeps them in registers. Fitted to NeuSight's six GPUs.
constexpr double kNormRows = 40, kNormSpill = 2.91, kSoftmaxRows = 10.1, kSoftmaxSpill = 3.78, kRegisterColumns = 1'024;

class RowReader;
/// A kind of table: its columns, and how one of its rows is predicted. It returns the kind of kernel with its number
/// format, and sets the prediction.
struct Format {
  std::vector<const char*> columns;
  std::string (RowReader::*read)();
};

class RowReader {
 public:
  RowReader(const CsvRow& row, const TermTable& terms, const Catalog& catalog, const Operators& operators,
            std::map<std::string, Gpu>& gpus)
      : row_(row), terms_(terms), catalog_(catalog), operators_(operators), gpus_(gpus) {}

  MeasuredKernel read(const Format& format) {
    result_.line = row_.line();
    result_.id = fmt::format("{}:{}", row_.header().file, row_.line());
    read_supported(result_, [&] {
      read_time();
      read_gpu();
      result_.family = (this->*format.read)();
    });
    if (result_.family.empty()) result_.family = "kernels";
    return std::move(result_);
  }

  std::string gemm() {
    const std::string format = format_of("gemm_dtype");
    const GemmOperator& known = gemm_operator(format, "gemm");
    const std::int64_t m = size("m"), n = size("n"), k = size("k");
    const double ps = core::compute::gemm_ps(core::compute::gemm("gemm", m, n, k, dtype_of(format)), known.rates, gpu(),
                                             core::compute::PowerState::burst);
    result_.beside_us = gpu().launch_us + known.fixed_us + known.quantise_us_per_m * 1e-6 * static_cast<double>(m * k);
    result_.predicted_us = ps / kPsPerUs + result_.beside_us;
    if (format != "fp8_block") {  // whose kernels training does not run
      result_.m = m, result_.n = n, result_.k = k;
      result_.format = format == "bf16"  ? core::compute::GemmFormat::bf16
                       : format == "fp8" ? core::compute::GemmFormat::fp8
                                         : core::compute::GemmFormat::fp4;
    }
    return family("GEMM", format, kLongKernelUs);
  }

  /// A GEMM of training, of one layer or of each of some experts, which SimuMax times many times in a row.
  std::string training_gemm() {
    const std::string pass = text("pass");
    const std::int64_t m = size("m"), n = size("n"), k = size("k"), experts = row_.integer("experts").value_or(0);
    if (experts < 0 || experts > kMaxExperts) throw UnsupportedRow{"its experts are not modelled", text("experts")};
    check_work({2, m, n, k, std::max<std::int64_t>(1, experts)});
    const bool adds = row_.integer("accumulate").value_or(0) != 0, fp32 = text("out_dtype") == "fp32";
    Kernel kernel = experts > 0    ? adds && fp32
                                         ? core::compute::grouped_weight_gradient("gemm", m, n, k, experts, Dtype::bf16)
                                         : core::compute::grouped_gemm("gemm", m, n, k, experts, Dtype::bf16)
                       : adds && fp32 ? core::compute::weight_gradient("gemm", m, n, k)
                                   : core::compute::gemm("gemm", m, n, k);
    if (adds && !fp32) kernel.bytes += 2 * m * n * std::max<std::int64_t>(1, experts);  // reads the gradient
    const double ps = core::compute::gemm_ps(kernel, core::compute::gemm_rates(Dtype::bf16, gpu()), gpu(),
                                             core::compute::PowerState::sustained);
    result_.predicted_us = ps / kPsPerUs + gpu().launch_us;
    for (const char* known : {"forward", "input gradient", "weight gradient"})
      if (pass == known)
        return family(fmt::format("{}{}", experts > 0 ? "experts' GEMM, " : "GEMM, ", pass), "bf16", kLongKernelUs);
    throw UnsupportedRow{"its pass is not modelled", pass};
  }

  /// Fused attention of training, causal.
  std::string training_attention() {
    core::compute::AttentionShape shape;
    shape.queries = shape.keys = size("isl");
    shape.width = size("head_dim");
    shape.value_width = size("v_head_dim");
    const std::int64_t samples = size("batch_size");
    shape.batch = samples * size("num_heads");
    shape.key_batch = samples * size("num_key_value_heads");
    shape.pairs = shape.keys * shape.keys / 2;
    check_work({2, shape.batch, shape.keys, shape.keys, std::max(shape.width, shape.value_width)});
    const bool cudnn = text("kernel_source") == "cudnn", backward = text("pass") == "backward";
    if (!cudnn && text("kernel_source") != "flash2")
      throw UnsupportedRow{"its attention kernel is not modelled", text("kernel_source")};
    if (!backward && text("pass") != "forward") throw UnsupportedRow{"its pass is not modelled", text("pass")};
    if (!cudnn) shape.value_width = std::max(shape.width, shape.value_width);  // which Transformer Engine pads
    const KernelClass kernel_class = backward ? cudnn ? KernelClass::cudnn_backward : KernelClass::flash2_backward
                                     : cudnn  ? KernelClass::cudnn_forward
                                              : KernelClass::flash2_forward;
    result_.predicted_us =
        static_cast<double>(modelled_time(core::compute::fused_attention("attention", kernel_class, shape), gpu())) /
        kPsPerUs;
    return family(backward ? "attention, backward" : "attention, forward", "bf16",
                  backward ? kLongKernelUs : kLongTracedUs);
  }

  /// The scale of a tensor for FP8: the difference between quantisation that computes its scale and one that is given
  /// it, so one more read of 16 bits an element. Its kernel is limited by the compute units unless the cache holds it.
  std::string scale() {
    const MemoryOperator& known = memory_operator();
    if (!(known.scale_gb_per_s > 0)) throw UnsupportedRow{"nothing is known of this operator on its GPU", result_.gpu};
    const double bytes = 2 * static_cast<double>(size("m", kMaxRows)) * static_cast<double>(size("k"));
    const double cached = std::min(bytes, known.scale_cached_share * known.cache_mb * 1e6);
    result_.predicted_us = known.scale_fixed_us + cached / (known.scale_cache_gb_per_s * 1e3) +
                           (bytes - cached) / (known.scale_gb_per_s * 1e3);
    return family("quantisation", text("quant_dtype"), kLongMemoryBoundUs);
  }

  /// A layer norm or a softmax of PyTorch in fp32, without fusion: rows are read again, as far as the rows that the
  /// compute units work on exceed the cache.
  std::string row_operator(const std::string& op) {
    const MemoryOperator& known = memory_operator();
    const auto rows = static_cast<double>(size("b", kMaxRows)), columns = static_cast<double>(size("h"));
    const bool norm = op == "ln";
    const double in_flight = 4 * columns * (norm ? kNormRows : kSoftmaxRows) *
                             static_cast<double>(gpu().compute_units) / (known.cache_mb * 1e6);
    const double again = norm                          ? std::min(1.0, in_flight / kNormSpill)
                         : columns <= kRegisterColumns ? 0
                                                       : 2 * std::min(1.0, in_flight / kSoftmaxSpill);
    result_.predicted_us =
        kDispatchUs + 4 * rows * columns * (2 + again) * core::compute::ps_per_byte(gpu()) / kPsPerUs;
    return family(norm ? "layer norm" : "softmax", "fp32", kLongMemoryBoundUs);
  }

  /// A layer of experts: routing, permutation, two grouped GEMMs with an activation between them, and the sums over the
  /// experts of a token.
  std::string experts() {
    const std::string format = format_of("moe_dtype"), source = text("kernel_source");
    const GemmOperator& known = gemm_operator(format, "experts");
    if (source.find("min_latency") != std::string::npos)
      throw UnsupportedRow{"its kernels of experts are not modelled", source};
    if (text("distribution") != "balanced")
      throw UnsupportedRow{"the tokens of its experts are drawn and not printed", text("distribution")};
    const bool gated = source.find("nongated") == std::string::npos;
    const std::int64_t tokens = size("num_tokens"), hidden = size("hidden_size"), chosen = size("topk");
    const std::int64_t all = size("num_experts"), ranks = size("moe_ep_size"), sharded = size("moe_tp_size");
    const std::int64_t ffn = size("inter_size") / sharded, here = all / ranks;
    if (here < 2 || ffn < 1 || here * ranks != all || all > kMaxExperts)
      throw UnsupportedRow{"its experts are not modelled", fmt::format("{} of {}", here, all)};
    check_work({4, tokens, chosen, ffn, hidden});
    const std::vector<std::int64_t> loads = balanced_loads(tokens * chosen, all, here);
    std::int64_t pairs = 0;
    for (const std::int64_t load : loads) pairs += load;
    const std::int64_t halves = gated ? 2 : 1;
    double ps = 0;
    for (const auto& [n, k] : {std::pair{halves * ffn, hidden}, std::pair{hidden, ffn}}) {
      Kernel grouped = core::compute::grouped_gemm("experts", loads, n, k, dtype_of(format));
      grouped.one_by_one = false;  // TensorRT-LLM launches one kernel
      ps += core::compute::gemm_ps(grouped, known.rates, gpu(), core::compute::PowerState::burst);
    }
    const std::int64_t element_bits = format == "bf16" ? 16 : format == "nvfp4" ? 4 : 8;
    const double bytes = static_cast<double>(4 * tokens * hidden + 2 * pairs * halves * ffn) +
                         static_cast<double>(pairs * (hidden + ffn) * element_bits) / 8;
    result_.predicted_us = ps / kPsPerUs + bytes / (gpu().memory_gb_per_s * known.rates.memory_efficiency * 1e3) +
                           known.unpermute_us_per_m * 1e-6 * static_cast<double>(pairs * hidden) +
                           known.route_us_per_m * 1e-6 * static_cast<double>(tokens * chosen) + known.fixed_us;
    return family("experts", format, kLongKernelUs);
  }

  std::string attention() {
    const std::string format = text("kv_cache_dtype") == "fp8" ? "fp8" : format_of("attn_dtype");
    core::compute::AttentionShape shape;
    shape.queries = shape.keys = size("isl");
    shape.width = shape.value_width = size("head_dim");
    const std::int64_t samples = size("batch_size"), heads = size("num_heads"), kv_heads = size("num_key_value_heads");
    shape.batch = samples * heads;
    shape.key_batch = samples * kv_heads;
    check_work({2, shape.batch, shape.keys, shape.keys, shape.width});
    check_work({2, shape.key_batch, shape.keys, shape.width});
    const std::int64_t window = row_.integer("window_size").value_or(0);
    shape.window = window > 0 && window < shape.keys ? window : 0;
    if (!text("kernel_source").starts_with("torch_flow") && !text("kernel_source").starts_with("default"))
      throw UnsupportedRow{"its attention kernel is not modelled", text("kernel_source")};
    const double bytes = 2.0 * static_cast<double>(samples * shape.keys) *
                         static_cast<double>(heads * shape.width + 2 * kv_heads * shape.width);
    return predict_attention(shape, format, bytes * (format == "fp8" ? 1.5 : 2), false);
  }

  std::string latent_attention() {
    const std::string format = text("kv_cache_dtype") == "fp8" && fp8_units() ? "fp8" : format_of("mla_dtype");
    core::compute::AttentionShape shape;
    shape.queries = shape.keys = size("isl");
    shape.width = kLatentWidth;
    shape.value_width = kLatentValueWidth;
    const std::int64_t samples = size("batch_size"), heads = size("num_heads");
    shape.batch = shape.key_batch = samples * heads;
    check_work({2, shape.batch, shape.keys, shape.keys, shape.width});
    const auto tokens = static_cast<double>(samples * shape.keys);
    const double read_bytes = 2 * tokens * static_cast<double>(heads * (2 * kLatentWidth + kLatentValueWidth));
    const double bytes = tokens * static_cast<double>(kLatentHeadBytes * heads + kLatentTokenBytes) +
                         (format == "fp8" ? 1.5 * read_bytes : 0);
    return predict_attention(shape, format, bytes, true);
  }

  std::string elementwise() {
    if (text("op") == "ln" || text("op") == "softmax") return row_operator(text("op"));
    constexpr std::pair<const char*, int> kAccesses[] = {{"add", 3}, {"addu", 2}, {"div", 3}, {"divu", 2}, {"gelu", 2},
                                                         {"mul", 3}, {"mulu", 2}, {"pow", 3}, {"relu", 2}, {"tanh", 2}};
    const auto known = std::find_if(std::begin(kAccesses), std::end(kAccesses),
                                    [&](const auto& one) { return text("op") == one.first; });
    if (known == std::end(kAccesses)) throw UnsupportedRow{"its operator is not modelled", text("op")};
    const std::int64_t bytes = 4 * size("b", kMaxRows) * size("h") * known->second;
    result_.predicted_us = kDispatchUs + static_cast<double>(bytes) * core::compute::ps_per_byte(gpu()) / kPsPerUs;
    return family("element-wise", "fp32", kLongMemoryBoundUs);
  }

  /// A row of a table of measured kernels, such as script/measure_kernels.py writes.
  std::string measured_kernel() {
    const import::KernelSample sample = import::read_kernel_sample(row_);
    if (!sample.unsupported.empty()) throw UnsupportedRow{sample.unsupported, sample.detail};
    result_.predicted_us = import::predicted_us(sample, gpu());
    const bool moves = sample.kernel.kernel_class == KernelClass::memory_bound;
    return family(sample.kind, "", moves ? kLongMemoryBoundUs : kLongKernelUs);
  }

 private:
  /// Returns the tokens of the first rank's experts: all experts of all ranks have equally many, the first of each rank
  /// one more if they do not divide.
  static std::vector<std::int64_t> balanced_loads(std::int64_t pairs, std::int64_t all, std::int64_t here) {
    std::vector<std::int64_t> loads(static_cast<std::size_t>(here), pairs / all);
    const std::int64_t ranks = all / here, more = (pairs % all + ranks - 1) / ranks;
    for (std::int64_t i = 0; i < more; ++i) ++loads[static_cast<std::size_t>(i)];
    return loads;
  }

  static Dtype dtype_of(const std::string& format) {
    if (format == "bf16") return Dtype::bf16;
    return format == "nvfp4" ? Dtype::fp4 : Dtype::fp8;
  }

  const GemmOperator& gemm_operator(const std::string& format, const std::string& name) const {
    const GemmOperator* known = operators_.gemm(result_.gpu, format, name);
    if (!known) throw UnsupportedRow{"nothing is known of this operator on its GPU", result_.gpu + " " + format};
    return *known;
  }

  const MemoryOperator& memory_operator() const {
    const MemoryOperator* known = operators_.memory(result_.gpu);
    if (!known) throw UnsupportedRow{"nothing is known of this operator on its GPU", result_.gpu};
    return *known;
  }

  std::string text(const char* column) const { return std::string(row_.text(column)); }

  std::int64_t size(const char* column, std::int64_t max = kMaxSize) const {
    const auto value = row_.integer(column);
    if (!value || *value < 1 || *value > max)
      throw UnsupportedRow{fmt::format("{} is no size from 1 to {}", column, max), text(column)};
    return *value;
  }

  /// Refuses a row whose operations would not fit into an integer: no GPU ends so much.
  static void check_work(std::initializer_list<std::int64_t> sizes) {
    double operations = 1;
    for (const std::int64_t one : sizes) operations *= static_cast<double>(one);
    if (operations > kMaxOperations)
      throw UnsupportedRow{"its operations are too many",
                           fmt::format("{:.3g}, at most {:.3g}", operations, kMaxOperations)};
  }

  void read_time() {
    constexpr std::pair<const char*, double> kTimes[] = {{"latency", 1e3}, {"latency_ms", 1e3}, {"time_us", 1}};
    for (const auto& [column, us] : kTimes) {
      if (!row_.header().has(column)) continue;
      const auto time = row_.real(column);
      if (!time || !(*time > 0) || !std::isfinite(*time * us))
        throw UnsupportedRow{"its time is not above 0", text(column)};
      result_.measured_us = *time * us;
      return;
    }
  }

  void read_gpu() {
    const std::string device = text("device");
    result_.gpu = catalog_.entries("gpus").count(device) > 0 ? device : terms_.meaning("gpu", device).value_or("");
    if (result_.gpu.empty()) throw UnsupportedRow{"its GPU is not in the catalog", device};
    const auto& entries = catalog_.entries("gpus");
    if (gpus_.count(result_.gpu) == 0) {
      gpus_[result_.gpu] = gpu_of(entries.at(result_.gpu));
      operators_.lend_rates(gpus_[result_.gpu], result_.gpu, catalog_);
    }
  }

  const Gpu& gpu() const { return gpus_.at(result_.gpu); }
  bool fp8_units() const { return (gpu().precisions & core::compute::bit_of(core::compute::Precision::fp8)) != 0; }

  std::string format_of(const char* column) const {
    const std::string name = text(column);
    if (name == "bfloat16" || name == "float16") return "bf16";
    if (name == "fp8" || name == "fp8_block" || name == "nvfp4") return name;
    throw UnsupportedRow{"its number format is not modelled", name};
  }

  std::string family(const std::string& kind, const std::string& format, double long_us) const {
    std::string name = result_.gpu.substr(0, result_.gpu.find('_'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return fmt::format("{}{}{} {}, {} {:g} us", kind, format.empty() ? "" : " ", format, name,
                       result_.measured_us < long_us ? "below" : "from", long_us);
  }

  std::string predict_attention(core::compute::AttentionShape shape, const std::string& format, double prepared_bytes,
                                bool latent) {
    const std::int64_t reach = shape.window > 0 ? shape.window : shape.keys;
    shape.pairs = reach * (2 * shape.keys - reach) / 2;
    const AttentionOperator* known = operators_.attention(result_.gpu, format);
    if (!known) throw UnsupportedRow{"nothing is known of this attention operator on its GPU", result_.gpu};
    AttentionRates rates = known->rates;
    if (latent) rates.tile_us *= kLatentTile, rates.wide_tile_us *= kLatentTile;
    const double per_byte = core::compute::ps_per_byte(gpu());
    const Kernel kernel = core::compute::fused_attention("attention", KernelClass::cudnn_forward, shape,
                                                         format == "fp8" ? Dtype::fp8 : Dtype::bf16);
    const double prepared_ps = prepared_bytes * per_byte * gpu().memory_efficiency / known->preparation_efficiency;
    result_.predicted_us = (latent ? known->fixed_latent_us : known->fixed_us) + prepared_ps / kPsPerUs +
                           core::compute::attention_forward_ps(kernel, rates, gpu(), per_byte) / kPsPerUs;
    return family(latent ? "latent attention" : "attention", format, kLongKernelUs);
  }

  const CsvRow& row_;
  const TermTable& terms_;
  const Catalog& catalog_;
  const Operators& operators_;
  std::map<std::string, Gpu>& gpus_;
  MeasuredKernel result_;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {{"device", "gemm_dtype", "m", "n", "k", "latency"}, &RowReader::gemm},
      {{"device", "moe_dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
        "moe_ep_size", "distribution", "latency"},
       &RowReader::experts},
      {{"device", "attn_dtype", "kv_cache_dtype", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim",
        "latency"},
       &RowReader::attention},
      {{"device", "mla_dtype", "kv_cache_dtype", "batch_size", "isl", "num_heads", "latency"},
       &RowReader::latent_attention},
      {{"device", "op", "b", "h", "latency_ms"}, &RowReader::elementwise},
      {{"device", "op_name", "quant_dtype", "m", "k", "latency"}, &RowReader::scale},
      {{"device", "pass", "accumulate", "out_dtype", "m", "n", "k", "experts", "latency"}, &RowReader::training_gemm},
      {{"device", "pass", "kernel_source", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim",
        "v_head_dim", "latency"},
       &RowReader::training_attention},
      {{"device", "level", "name", "kind", "dtype", "time_us"}, &RowReader::measured_kernel}};
  return all;
}

const Format* format_of(const import::CsvHeader& header) {
  for (const Format& format : formats())
    if (std::all_of(format.columns.begin(), format.columns.end(), [&](const char* name) { return header.has(name); }))
      return &format;
  return nullptr;
}

}  // namespace

bool is_kernels_table(const import::CsvHeader& header) {
  return format_of(header) != nullptr;
}

std::vector<MeasuredKernel> read_kernels(const import::CsvTable& table, const Catalog& catalog,
                                         KernelConstants constants) {
  const Format* format = format_of(*table.header);
  MANYWORLDS_CHECK(format != nullptr, "{} is no table of kernels", table.header->file);
  const TermTable terms;
  const Operators operators(constants);
  std::map<std::string, Gpu> gpus;
  std::vector<MeasuredKernel> all;
  for (const CsvRow& row : table.rows) all.push_back(RowReader(row, terms, catalog, operators, gpus).read(*format));
  return all;
}

}  // namespace manyworlds::experiments::measured
