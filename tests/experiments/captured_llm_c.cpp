// llm.c's kernels: what the table that is given for them says, against its tensors counted one by one, and the edits
// that stand for its build with cuDNN.
#include "experiments/edits/edited.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/captured_records.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;

namespace {

std::string file(const std::string& name) {
  return import::read_text(source_folder() + "/experiments/sweeps/llm_c/" + name);
}

// GPT-2 124M with one sample of 1,024 tokens: samples, tokens, channels, heads, words.
constexpr std::int64_t B = 1, T = 1024, C = 768, NH = 12, V = 50257;
constexpr std::int64_t kBf16 = 2, kFloat = 4;

struct Expected {
  const char* kernel;
  int grid;
  std::string arguments;
  std::int64_t bytes;
};

}  // namespace

TEST_CASE("the table of llm.c's kernels counts what each reads and writes") {
  const std::int64_t activations = B * T * C * kBf16, row_statistics = 2 * B * T * kFloat;
  const std::int64_t triangle = T * (T + 1) / 2 * kBf16, square = T * T * kBf16;  // of a head
  const std::int64_t parameters = 1000;
  const std::vector<Expected> all{
      {"encoder_forward_kernel3(", 384, "[0,0,0,0,1,1024,768]",
       activations + activations + T * C * kBf16 + B * T * kFloat},  // out, rows of words, positions, tokens
      {"layernorm_forward_kernel6(", 512, "[0,0,0,0,0,0,1024,768]", 2 * activations + row_statistics + 2 * C * kBf16},
      {"fused_residual_forward_kernel5(", 512, "[0,0,0,0,0,0,0,0,1024,768]",
       4 * activations + row_statistics + 2 * C * kBf16},
      {"permute_kernel(", 3072, "[0,0,0,0,1,1024,12,64]", 6 * activations},
      {"permute_kernel_backward(", 3072, "[0,0,0,0,1,1024,12,64]", 6 * activations},
      {"unpermute_kernel(", 3072, "[0,0,1,1024,12,64]", 2 * activations},
      {"unpermute_kernel_backward(", 3072, "[0,0,1,1024,12,64]", 2 * activations},
      {"softmax_forward_kernel5(", 1536, "[0,0.125,0,12,1024]", B * NH * 2 * triangle},
      {"softmax_autoregressive_backward_inplace_kernel(", 256, "[0,0,1,1024,768,0.125]", 2 * triangle + square},
      {"void matmul_backward_bias_kernel9<float, true>(", 12, "[0,0,1,1024,768]", activations + C * kFloat},
      {"reduce_add_sum_kernel(", 1, "[0,0,768,22]", 22 * C * kFloat + 2 * C * kBf16},
      {"void fused_classifier_kernel5<true, false>(", 1024, "[0,0,0,1,0,1,1024,50257,50304]",
       B * T * (2 * V * kBf16 + 2 * kFloat + kFloat)},  // V of P logits
      {"layernorm_backward_kernel10(", 2, "[0,0,0,0,0,0,0,0,0,1,1024,768]",
       4 * activations + row_statistics + 2 * 2 * (2 * C * kFloat)},  // partial sums of two blocks, written and read
      {"wpe_backward_kernel(", 384, "[0,0,0,1,1024,768,7]", activations + 2 * T * C * kBf16},
      {"void adamw_kernel3<__nv_bfloat16, __nv_bfloat16>(", 2, "[0,0,0,0,0,1000,0,0,0]",
       parameters * (2 * kBf16 + 6 * kFloat)},
      {"void copy_and_cast_kernel<float, __nv_bfloat16>(", 2, "[0,0,1000,0,0]", parameters * (kFloat + kBf16)},
      {"void global_sum_single_block_kernel<float>(", 1, "[0,0,528]", 528 * kFloat + kFloat}};
  RecordText text;
  for (const Expected& one : all) text.launch(one.kernel, 0, one.grid, one.arguments);
  text.launch("gelu_forward_kernel2(", 0, 3, "[0,0]").launch("gelu_backward_inplace_kernel(", 0, 3, "[0,0]");
  const auto read = import_records({text}, all_of_it(), file("kernels.yaml"));
  const auto& ops = read.programs.programs[0].ops;
  const auto bytes = [&](std::size_t op) { return std::get<programs::KernelWork>(ops.at(op).work).shape.bytes; };
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].kernel);
    CHECK(bytes(i) == all[i].bytes);
  }
  CHECK(bytes(all.size()) == 3 * 32 * 8 * 2 * kBf16);  // eight values a thread: read and written
  CHECK(bytes(all.size() + 1) == 3 * 32 * 8 * 3 * kBf16);
}

TEST_CASE("the edits of llm.c's build with cuDNN leave attention alone of what has T x T elements") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"k\"}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"s\"]}\n"
      "{\"kernel\":\"permute_kernel(\",\"bytes\":8,\"stream\":\"s\"}\n"
      "{\"kernel\":\"cublasLtMatmul\",\"gemm\":[1024,1024,64,768],\"stream\":\"s\"}\n"
      "{\"kernel\":\"softmax_forward_kernel5(\",\"bytes\":8,\"stream\":\"s\"}\n"
      "{\"kernel\":\"cublasLtMatmul\",\"gemm\":[64,1024,1024,768],\"stream\":\"s\"}\n"
      "{\"kernel\":\"unpermute_kernel(\",\"bytes\":8,\"stream\":\"s\"}\n"
      "{\"kernel\":\"cublasLtMatmul\",\"gemm\":[768,65536,768,1],\"stream\":\"s\"}\n"
      "{\"kernel\":\"softmax_autoregressive_backward_inplace_kernel(\",\"bytes\":8,\"stream\":\"s\"}\n";
  programs::StreamPrograms all = programs::parse_program_file(text, "k");
  edits::make_edits(all, edits::parse_edits(file("flash.yaml"), "flash.yaml"));
  std::vector<std::string> left;
  for (const programs::StreamOp& op : all.programs[0].ops) left.push_back(all.names[op.name]);
  CHECK(left == std::vector<std::string>{"softmax_forward_kernel5(", "cublasLtMatmul",
                                         "softmax_autoregressive_backward_inplace_kernel("});
  const auto attention = [&](std::size_t op) {
    return std::get<programs::KernelWork>(all.programs[0].ops[op].work).shape.attention.value();
  };
  CHECK(attention(0).kernel_class == compute::KernelClass::cudnn_forward);
  CHECK(attention(2).kernel_class == compute::KernelClass::cudnn_backward);
  CHECK(attention(2).batch == 768);
}
