// Files of AICB's AIOB.
#include "experiments/kernels/aiob_file.hpp"

#include <catch2/catch.hpp>

#include "experiments/text/text.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using manyworlds::experiments::import::AiobTime;
using manyworlds::experiments::import::parse_aiob;

TEST_CASE("the file that AICB ships has the averages of its operations") {
  const std::string path = source_folder() + "/tests/experiments/simai/aiob_example.txt";
  const std::vector<AiobTime> times = parse_aiob(experiments::import::read_text(path), "aiob_example.txt");
  REQUIRE(times.size() == 12);
  const auto us = [&](const std::string& operation) {
    for (const AiobTime& one : times)
      if (one.operation == operation) return one.us;
    return 0.0;
  };
  CHECK(us("Emb") == 799);
  CHECK(us("atten_qkv") == 889);
  CHECK(us("atten_flash") == 512);
  CHECK(us("mlp_gelu") == 257);
  CHECK(us("logit_time") == 12'824);
  // AICB sums these as a layer's forward pass (utils.py, extract_averages): its attention and its MLP.
  CHECK(us("layernorm") + us("atten_qkv") + us("atten_flash") + us("atten_linear") == 1'820);
  CHECK(us("layernorm2") + us("mlp_linear_1") + us("mlp_gelu") + us("mlp_linear_2") == 2'478);
  CHECK(times[0].level == core::compute::CostLevel::layer);
  CHECK(times[2].names == std::vector<std::string_view>{"qkv"});
  CHECK(times.back().operation == "param_time");
  CHECK(times.back().names.empty());
  CHECK(times[2].line == 10);
}

TEST_CASE("what is no file of AIOB is refused with its line") {
  const auto error = [](const std::string& text) { return tests::error_of([&] { parse_aiob(text, "a.txt"); }); };
  CHECK(error("") == "a.txt:1: is no file of AIOB: it has no operation");
  CHECK(error("a,b\n").find("a.txt:1: is no file of AIOB: a line is") == 0);
  CHECK(
      error("train_iter:10\natten_kqv:\n").find("a.txt:2: AIOB has no operation 'atten_kqv' that is known here; did") ==
      0);
  CHECK(error("    time_gpu_avg: 3\n") == "a.txt:1: a time stands before the first operation");
  CHECK(error("Emb:\n    time_gpu_max: 3\nlayernorm:\n    time_gpu_avg: 1\n") == "a.txt:1: 'Emb' has no time_gpu_avg");
  CHECK(error("Emb:\n    time_gpu_avg: 3\nEmb:\n") == "a.txt:3: 'Emb' is there twice");
  for (const char* wrong : {"0", "-1", "nan", "1e99", "x", "3us"})
    CHECK(error(fmt::format("Emb:\n    time_gpu_avg: {}\n", wrong)).find("a.txt:2: time_gpu_avg must be a number") ==
          0);
}
