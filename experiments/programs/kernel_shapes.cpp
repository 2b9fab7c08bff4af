#include "experiments/programs/kernel_shapes.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "core/base/error.hpp"
#include "core/compute/measured.hpp"
#include "experiments/programs/choice.hpp"

namespace manyworlds::experiments::programs {
namespace {

using core::InputError;
using core::compute::Dtype;
using core::compute::kDtypeNames;
using core::compute::KernelClass;
using import::JsonView;

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40, kMaxBytes = std::int64_t{1} << 50;
constexpr double kMaxOperations = 1e18;
/// Names of the classes of fused attention, which stand between GEMMs and what is bound by memory, from kFirstAttention
/// on.
constexpr std::size_t kFirstAttention = static_cast<std::size_t>(KernelClass::flash_forward);
constexpr std::span kAttentionNames =
    std::span(core::compute::kKernelClassNames)
        .subspan(kFirstAttention, static_cast<std::size_t>(KernelClass::memory_bound) - kFirstAttention);

Dtype dtype_of(const JsonView& value) {
  return static_cast<Dtype>(choice(value, "dtype", kDtypeNames));
}

GemmShape gemm_of(const JsonView& line, const JsonView& value) {
  std::vector<std::int64_t> extents;
  double product = 2;
  value.for_each([&](const JsonView& one) {
    extents.push_back(one.whole(1, kMaxExtent));
    product *= static_cast<double>(extents.back());
  });
  if (extents.size() != 4 || product > kMaxOperations)
    throw InputError("'gemm' must be [m, n, k, batch], with at most 1e18 operations");
  GemmShape shape{extents[0], extents[1], extents[2], extents[3], {}};
  if (const auto dtype = line.find("dtype")) shape.dtype = dtype_of(*dtype);
  return shape;
}

}  // namespace

AttentionShape attention_of(const JsonView& value) {
  AttentionShape shape;
  shape.kernel_class = static_cast<KernelClass>(kFirstAttention + choice(value.at("class"), "class", kAttentionNames));
  const auto extent = [&](const char* member) { return value.at(member).whole(1, kMaxExtent); };
  shape.queries = extent("queries"), shape.keys = extent("keys");
  shape.width = extent("width"), shape.batch = extent("batch");
  shape.key_batch = value.find("key_batch") ? extent("key_batch") : shape.batch;
  if (shape.batch % shape.key_batch != 0) throw InputError("'batch' must be a multiple of 'key_batch'");
  if (const auto causal = value.find("causal")) shape.is_causal = causal->boolean();
  if (const auto dtype = value.find("dtype")) shape.dtype = dtype_of(*dtype);
  const double operations = 10.0 * static_cast<double>(shape.queries) * static_cast<double>(shape.keys) *
                            static_cast<double>(shape.width) * static_cast<double>(shape.batch);
  if (operations > kMaxOperations) throw InputError("'attention' must have at most 1e18 operations");
  return shape;
}

KernelShape shape_of(const JsonView& line) {
  KernelShape shape;
  if (const auto bytes = line.find("bytes")) shape.bytes = bytes->whole(0, kMaxBytes);
  if (const auto gemm = line.find("gemm")) shape.gemm = gemm_of(line, *gemm);
  if (const auto attention = line.find("attention")) {
    if (shape.gemm) throw InputError("a kernel has 'gemm' or 'attention', not both");
    if (line.find("dtype")) throw InputError("'dtype' of attention stands in 'attention'");
    shape.attention = attention_of(*attention);
  }
  return shape;
}

std::string shape_text(const KernelShape& shape) {
  std::vector<std::string> members;
  const auto name_of = [](Dtype dtype) { return kDtypeNames[static_cast<std::size_t>(dtype)]; };
  if (const auto& gemm = shape.gemm)
    members.push_back(fmt::format(R"("gemm":[{},{},{},{}],"dtype":"{}")", gemm->m, gemm->n, gemm->k, gemm->batch,
                                  name_of(gemm->dtype)));
  if (const auto& attention = shape.attention)
    members.push_back(fmt::format(
        R"("attention":{{"class":"{}","queries":{},"keys":{},"width":{},"batch":{},"key_batch":{},"causal":{},"dtype":"{}"}})",
        core::compute::kKernelClassNames[static_cast<std::size_t>(attention->kernel_class)], attention->queries,
        attention->keys, attention->width, attention->batch, attention->key_batch, attention->is_causal,
        name_of(attention->dtype)));
  if (shape.bytes > 0) members.push_back(fmt::format(R"("bytes":{})", shape.bytes));
  return fmt::format("{}", fmt::join(members, ","));
}

}  // namespace manyworlds::experiments::programs
