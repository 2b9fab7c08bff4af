#include "experiments/records/matrix_kernels.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "experiments/cudnn_graphs/graph_kernel.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;
using import::JsonView;

constexpr double kMaxOperations = 1e18;  // as in program files

void add_attention(Form& to, const programs::AttentionShape& shape) {
  to.add(static_cast<std::uint64_t>(shape.kernel_class)).add_signed(shape.queries).add_signed(shape.keys);
  to.add_signed(shape.width).add_signed(shape.batch).add_signed(shape.key_batch).add(shape.is_causal ? 1 : 0);
}

}  // namespace

Product product_of(const JsonView& line, Words& words) {
  Product product;
  programs::GemmShape& shape = product.shape;
  for (const auto& [member, to] : {std::pair("m", &shape.m), {"n", &shape.n}, {"k", &shape.k}, {"batch", &shape.batch}})
    *to = line.at(member).whole(0, std::int64_t{1} << 31);
  const double operations = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k) * static_cast<double>(shape.batch);
  if (operations > kMaxOperations) throw InputError("is a product of more than 1e18 operations");
  std::vector<std::string> types;
  line.at("dtypes").for_each([&](const JsonView& type) { types.push_back(type.text()); });
  if (types.size() != 3) throw InputError("'dtypes' must have three types: of A, B and D");
  product.dtype = words(types[0]);
  using core::compute::Dtype;
  if (types[0] == "fp32") {
    shape.dtype = Dtype::fp32;
  } else if (types[0].starts_with("fp8")) {
    shape.dtype = Dtype::fp8;
  } else {
    product.has_rate = types[0] == "bf16" || types[0] == "fp16";
  }
  return product;
}

NamedKernel library_kernel_of(const JsonView& line, Words& words, std::vector<LibraryKernel>& kernels) {
  const cudnn_graphs::GraphKernel kernel = cudnn_graphs::graph_kernel(cudnn_graphs::operation_graph_of(line));
  const auto number = static_cast<std::uint32_t>(kernels.size());
  kernels.push_back({kernel.work, words(kernel.dtype)});
  const std::uint32_t name = words(kernel.name);
  const programs::KernelShape& shape = kernel.work.shape;
  Form form;
  form.add(name).add(words(kernel.dtype)).add_signed(shape.bytes);
  if (shape.gemm) form.add_shape(*shape.gemm);
  if (shape.attention) add_attention(form, *shape.attention);
  return {name, number, form.value()};
}

}  // namespace manyworlds::experiments::captured
