// Graphs of cuDNN's operations in records: what they cost as kernels, and which are not understood.
#include "tests/experiments/captured_records.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::captured;
using core::compute::KernelClass;
using programs::KernelWork;

namespace {

/// A graph in the making. Tensors from 100 on are virtual, and have strides without gaps.
class GraphText {
 public:
  GraphText& tensor(int id, const std::vector<std::int64_t>& dimensions, const std::string& dtype = "bf16") {
    std::vector<std::int64_t> strides(dimensions.size(), 1);
    for (std::size_t i = dimensions.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dimensions[i + 1];
    tensors_.push_back(fmt::format(R"({{"id":{},"dims":[{}],"strides":[{}],"dtype":"{}"{}}})", id,
                                   fmt::join(dimensions, ","), fmt::join(strides, ","), dtype,
                                   id >= 100 ? R"(,"virtual":true)" : ""));
    return *this;
  }
  /// Parts are as "a 1, b 2".
  GraphText& operation(const std::string& name, const std::string& inputs, const std::string& outputs) {
    operations_.push_back(
        fmt::format(R"({{"operation":"{}","inputs":[{}],"outputs":[{}]}})", name, parts(inputs), parts(outputs)));
    return *this;
  }
  GraphText& matmul(int a, int b, int c) {
    return operation("matmul", fmt::format("a {}, b {}", a, b), fmt::format("c {}", c));
  }
  GraphText& pointwise(const std::string& name, const std::vector<int>& inputs, int output) {
    std::string text;
    for (const int one : inputs) text += fmt::format("{}x {}", text.empty() ? "" : ", ", one);
    return operation(name, text, fmt::format("y {}", output));
  }
  std::string members() const {
    return fmt::format(R"("tensors":[{}],"operations":[{}])", fmt::join(tensors_, ","), fmt::join(operations_, ","));
  }

 private:
  static std::string parts(const std::string& text) {
    std::string pairs;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t space = text.find(' ', at), end = std::min(text.find(',', at), text.size());
      pairs += fmt::format("{}[\"{}\",{}]", pairs.empty() ? "" : ",", text.substr(at, space - at),
                           text.substr(space + 1, end - space - 1));
      at = end + 2;
    }
    return pairs;
  }
  std::vector<std::string> tensors_, operations_;
};

/// A record in which a plan of the graph is executed once.
RecordText executed(const GraphText& graph) {
  return RecordText()
      .call("cudnnBackendFinalize", "\"plan\":0," + graph.members())
      .call("cudnnBackendExecute", R"("plan":0,"data":[],"workspace":null,"stream":0)");
}

programs::Imported read(const GraphText& graph, const std::string& table = "kernels: []\n") {
  return import_records({executed(graph)}, all_of_it(), table);
}
const KernelWork& kernel_of(const programs::Imported& imported) {
  return std::get<KernelWork>(imported.programs.programs.at(0).ops.at(0).work);
}
std::string name_of(const programs::Imported& imported) {
  return imported.programs.names[imported.programs.programs.at(0).ops.at(0).name];
}

constexpr std::int64_t kSamples = 2, kHeads = 6, kQueries = 128, kKeys = 192, kWidth = 64;

/// Q K^T and the products of the shares with values of a width; `masks` are pairs of a comparison of rows and columns.
GraphText attention(const std::vector<std::string>& comparisons, std::int64_t value_width = kWidth,
                    const std::string& between = "exp", std::int64_t key_heads = 3) {
  const std::vector<std::int64_t> scores{kSamples, kHeads, kQueries, kKeys};
  GraphText graph;
  graph.tensor(1, {kSamples, kHeads, kQueries, kWidth}).tensor(2, {kSamples, key_heads, kWidth, kKeys});
  graph.tensor(3, {kSamples, key_heads, kKeys, value_width}).tensor(4, {kSamples, kHeads, kQueries, value_width});
  for (const int id : {100, 101, 102, 103, 104, 105}) graph.tensor(id, scores, "fp32");
  graph.matmul(1, 2, 100).pointwise("gen_index", {100}, 101).pointwise("gen_index", {100}, 102);
  for (const std::string& one : comparisons)
    graph.pointwise(one, {101, 102}, 103).pointwise("binary_select", {100, 103}, 104);
  graph.pointwise(between, {comparisons.empty() ? 100 : 104}, 105);
  return graph.matmul(105, 3, 4);
}

}  // namespace

TEST_CASE("two products with an exponential between them are attention, whatever masks the scores") {
  const auto plain = read(attention({}));
  CHECK(name_of(plain) == "cudnn attention_forward");
  CHECK(has_line(plain.programs.notes, "cuDNN asked for no workspace"));
  const programs::AttentionShape& shape = *kernel_of(plain).shape.attention;
  CHECK(shape == programs::AttentionShape{KernelClass::cudnn_forward, kQueries, kKeys, kWidth, kSamples * kHeads,
                                          kSamples * 3, false, core::compute::Dtype::bf16});
  CHECK(kernel_of(read(attention({"cmp_ge"}))).shape.attention->is_causal);
  // A window leaves less than half of the pairs, which a shape does not say.
  const auto window = read(attention({"cmp_ge", "cmp_gt"}));
  CHECK(!kernel_of(window).shape.is_known());
  CHECK(has_line(window.account, "'cudnn attention_forward with a window' (1 launches)"));
}

TEST_CASE("values of another width count as many operations as their products have") {
  const auto read_one = read(attention({}, 32));
  const programs::AttentionShape& shape = *kernel_of(read_one).shape.attention;
  const std::int64_t pairs = kSamples * kHeads * kQueries * kKeys;
  CHECK(2 * 2 * pairs * shape.width == 2 * pairs * kWidth + 2 * pairs * 32);
}

TEST_CASE("two products without an exponential between them are not understood, and a table gives their time") {
  const GraphText graph = attention({}, kWidth, "relu_fwd");
  const auto unknown = read(graph);
  CHECK(name_of(unknown) == "cudnn matmul, gen_index, gen_index, relu_fwd, matmul");
  CHECK(!kernel_of(unknown).shape.is_known());
  CHECK(has_line(unknown.account, "1 kernels of 1 launches have no time, as nothing says their cost: 'cudnn matmul"));
  const auto given = read(graph, "gpu: h100_sxm\nkernels:\n  - {kernel: 'cudnn matmul, *', us: 7}\n");
  CHECK(kernel_of(given).measured_us == 7);
  CHECK(error({executed(graph)}, all_of_it(), "kernels:\n  - {kernel: 'cudnn*', bytes: argument_1}\n")
            .find("argument_1 is no number in 'cudnn matmul") != std::string::npos);
}

TEST_CASE("a product has its batch, and the bytes of what is in memory, once each") {
  GraphText graph;
  graph.tensor(1, {5, 32, 48}).tensor(2, {1, 48, 64}).tensor(3, {5, 32, 64}, "fp32").tensor(4, {1, 1, 64});
  graph.tensor(100, {5, 32, 64}, "fp32").matmul(1, 2, 100).pointwise("add", {100, 4}, 3);
  const auto imported = read(graph);
  CHECK(name_of(imported) == "cudnn matmul, add");
  CHECK(kernel_of(imported).shape.gemm == programs::GemmShape{32, 64, 48, 5, core::compute::Dtype::bf16});
  CHECK(kernel_of(imported).shape.bytes == 2 * (5 * 32 * 48 + 48 * 64 + 64) + 4 * 5 * 32 * 64);
}

TEST_CASE("a convolution has the operations of its definition in three dimensions too") {
  constexpr std::int64_t kImages = 2, kChannels = 8, kFilters = 12, kExtent = 10, kFilter = 3;
  const std::vector<std::int64_t> x{kImages, kChannels, kExtent, kExtent, kExtent},
      w{kFilters, kChannels, kFilter, kFilter, kFilter}, y{kImages, kFilters, 8, 8, 8};
  std::int64_t operations = 0;  // one by one
  for (std::int64_t result = 0; result < kImages * kFilters * 8 * 8 * 8; ++result)
    for (std::int64_t element = 0; element < kChannels * kFilter * kFilter * kFilter; ++element) operations += 2;
  const auto of = [&](const char* name, const char* inputs, const char* outputs) {
    GraphText graph;
    graph.tensor(1, x).tensor(2, w).tensor(3, y).operation(name, inputs, outputs);
    return kernel_of(read(graph)).shape;
  };
  for (const programs::KernelShape& shape :
       {of("convolution_forward", "x 1, w 2", "y 3"), of("convolution_data_gradient", "w 2, dy 3", "dx 1"),
        of("convolution_weight_gradient", "x 1, dy 3", "dw 2")}) {
    const programs::GemmShape& gemm = *shape.gemm;
    CHECK(2 * gemm.m * gemm.n * gemm.k * gemm.batch == operations);
    CHECK(shape.bytes == 2 * (2 * 8 * 1000 + 12 * 8 * 27 + 2 * 12 * 512));
  }
}

TEST_CASE("what is no product moves bytes, and types without a rate have no time") {
  GraphText norm;
  norm.tensor(1, {64, 768}).tensor(2, {64, 768}).tensor(3, {1, 768}, "fp32");
  norm.tensor(4, {64, 768}, "boolean").operation("layer_norm_forward", "x 1, scale 3", "y 2");
  norm.pointwise("cmp_gt", {2, 1}, 4);
  CHECK(kernel_of(read(norm)).shape.bytes == 2 * 2 * 64 * 768 + 4 * 768 + 64 * 768 / 8);
  GraphText of_integers;
  of_integers.tensor(1, {32, 16}, "int8").tensor(2, {16, 64}, "int8").tensor(3, {32, 64}, "int32").matmul(1, 2, 3);
  CHECK(!kernel_of(read(of_integers)).shape.is_known());
  GraphText of_experts;
  of_experts.tensor(1, {32, 16}).tensor(2, {16, 64}).operation("moe_grouped_matmul", "tokens 1", "y 2");
  CHECK(has_line(read(of_experts).account, "'cudnn moe_grouped_matmul' (1 launches)"));
}

TEST_CASE("an operation that is all of attention has the shape of its queries, keys and values") {
  GraphText graph;
  graph.tensor(1, {2, 8, 128, 64}, "fp16").tensor(2, {2, 4, 256, 64}, "fp16").tensor(3, {2, 4, 256, 64}, "fp16");
  graph.tensor(4, {2, 8, 128, 64}, "fp16").operation("sdpa_forward", "q 1, k 2, v 3", "o 4");
  const auto imported = read(graph);
  const programs::AttentionShape& shape = *kernel_of(imported).shape.attention;
  CHECK(std::tuple(shape.queries, shape.keys, shape.width, shape.batch, shape.key_batch, shape.is_causal) ==
        std::tuple(128, 256, 64, 16, 8, false));
}

TEST_CASE("a plan that is executed in a captured graph runs at each launch of that") {
  GraphText graph;
  graph.tensor(1, {64, 64}).tensor(2, {64, 64}).pointwise("relu_fwd", {1}, 2);
  RecordText text;
  text.create().call("cudnnBackendFinalize", "\"plan\":0," + graph.members());
  text.call("cudaStreamBeginCapture", R"("stream":2,"graph":0)");
  text.call("cudnnBackendExecute", R"("plan":0,"data":[],"workspace":null,"stream":2)");
  text.call("cudaStreamEndCapture", R"("stream":2,"graph":0)");
  for (int launch = 0; launch < 2; ++launch) text.call("cudaGraphLaunch", R"("graph":0,"stream":0)");
  CHECK(operations(import_records({text})) == std::vector<std::string>(2, "cudnn relu_fwd on default stream"));
}

TEST_CASE("what is wrong with a graph in a record is said with its line") {
  const auto says = [](const std::string& members, const std::string& more = "") {
    RecordText text;
    text.call("cudnnBackendFinalize", "\"plan\":0," + members);
    if (!more.empty()) text.call("cudnnBackendExecute", more);
    return error({text});
  };
  GraphText graph;
  graph.tensor(1, {4, 4}).pointwise("exp", {1}, 1);
  CHECK(says(graph.members(), R"("plan":3,"stream":0)") ==
        "rank0.jsonl:3: executes a plan that was not finalized before");
  CHECK(says(R"("tensors":[],"operations":[])") == "rank0.jsonl:2: 'operations' of a graph must not be empty");
  CHECK(says(R"("tensors":[],"operations":[{"operation":"exp","inputs":[["x",1]],"outputs":[]}])") ==
        "rank0.jsonl:2: 'inputs' and 'outputs' must be pairs of a part and the id of a tensor");
  CHECK(says(R"("tensors":[{"id":1,"dims":[2,2],"strides":[1],"dtype":"bf16"}],"operations":[])") ==
        "rank0.jsonl:2: 'dims' and 'strides' of tensor 1 must be 1 to 8 numbers each");
  GraphText large;
  large.tensor(1, {1 << 20, 1 << 21});
  CHECK(says(large.members()).find("tensor 1 has more than 2^40 elements") != std::string::npos);
  CHECK(error({RecordText().call("cudnnFooForward")}).find("have no call 'cudnnFooForward'") != std::string::npos);
}
