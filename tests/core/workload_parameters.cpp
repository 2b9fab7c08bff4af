// Parameter counts against those their authors publish.
#include "core/workload/parameters.hpp"

#include <catch2/catch.hpp>

#include "core/workload/cut.hpp"
#include "workload_models.hpp"

using namespace manyworlds::core::workload;

TEST_CASE("GPT models have the parameters their authors count") {
  const auto gpt3 = static_cast<double>(model_parameters(gpt(96, 12'288, 96, 50'257)));
  CHECK(gpt3 == Approx(174'600e6).epsilon(1e-4));                           // Brown et al. 2020, table D.1
  CHECK(model_parameters(gpt(96, 12'288, 96, 50'257)) == 174'604'259'328);  // 12Lh^2 + 13Lh + (V + s + 2)h
  Model gpt2_xl = gpt(48, 1'600, 25, 50'257);
  gpt2_xl.sequence = 1'024;
  CHECK(model_parameters(gpt2_xl) == 1'557'611'200);  // the released checkpoint
}

TEST_CASE("Llama models have the parameters of the released checkpoints") {
  CHECK(model_parameters(llama3_70b()) == 70'553'706'496);
  CHECK(model_parameters(llama(32, 4'096, 32, 8, 14'336, 128'256)) == 8'030'261'248);   // Llama 3 8B
  CHECK(model_parameters(llama(32, 4'096, 32, 32, 11'008, 32'000)) == 6'738'415'616);   // Llama 2 7B
  CHECK(model_parameters(llama(40, 5'120, 40, 40, 13'824, 32'000)) == 13'015'864'320);  // Llama 2 13B
}

TEST_CASE("ranks together hold every parameter once, replicated ones once per tensor rank, a tied table twice") {
  for (const Model& model : {gpt3_175b(), llama3_70b()})
    for (const std::int64_t tp : {1, 2, 8})
      for (const std::int64_t pp : {1, 2, 8}) {
        std::int64_t held = 0;
        for (std::int64_t stage = 0; stage < pp; ++stage)
          held += tp * stage_parameters(model, layout(tp, pp, 1, 8), stage);
        const std::int64_t positions = model.position == Position::learned ? model.sequence * model.hidden : 0;
        const std::int64_t replicated =
            model.layers * replicated_layer_parameters(model) + positions + final_norm_parameters(model);
        const std::int64_t table = padded_vocabulary(model, tp) * model.hidden;
        const std::int64_t tables = model.tied_embeddings && pp == 1 ? table : 2 * table;
        const std::int64_t plain_tables = (model.tied_embeddings ? 1 : 2) * model.vocabulary * model.hidden;
        CAPTURE(tp, pp);
        CHECK(held == model_parameters(model) + (tp - 1) * replicated + tables - plain_tables);
      }
}

TEST_CASE("the vocabulary is padded to a multiple of 128 x tp") {
  CHECK(padded_vocabulary(gpt(1, 128, 1, 50'257), 1) == 50'304);
  CHECK(padded_vocabulary(gpt(1, 128, 1, 50'257), 8) == 51'200);
  CHECK(padded_vocabulary(gpt(1, 128, 1, 51'200), 8) == 51'200);
}
