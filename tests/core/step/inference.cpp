// Steps that are forward passes alone: what holds of every step.
#include <catch2/catch.hpp>

#include "core/memory/allocator.hpp"
#include "core/memory/footprint.hpp"
#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/estimate/volumes.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "tests/core/step/drawn_steps.hpp"

using namespace manyworlds::tests;

namespace {

/// A drawn configuration that scores, by turns in a context, with experts and latent attention, or generates.
step::Configuration draw_inference(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  if (seed % 4 == 0) result = with_context_and_experts(result, seed / 4);
  workload::Strategy& s = result.strategy;
  s.recompute = workload::Recompute::none, s.stack.overlap_experts = false;
  if (s.replicas() > 1 && seed % 3 == 0) s.zero = static_cast<std::int64_t>(seed % 4);
  result.model.dropout = false;
  result.model.inference = seed % 2 == 0 ? workload::Inference::scoring : workload::Inference::generation;
  if (result.model.inference == workload::Inference::generation) {
    s.sequence_parallel = s.stack.overlap_tensor = false;
    if (s.stack.attention == workload::AttentionKernel::unfused) s.stack.attention = workload::AttentionKernel::flash2;
    result.model.sequence = seed % 3 == 0 ? 128 : 1;
    result.model.cached_tokens = seed % 3 == 0 ? 0 : 100;
  }
  if (seed % 4 != 0 && seed % 5 < 2 && (s.tp == 1 || s.sequence_parallel)) {
    result.model.experts = 8, result.model.experts_per_token = 2;
    s.ep = std::min<std::int64_t>(s.tp * s.dp, 8);
  } else if (result.model.inference == workload::Inference::generation && s.tp > 1) {
    result.model.experts = 8, result.model.experts_per_token = 2;
    (seed % 5 == 2 ? s.ep : s.etp) = s.tp;  // whole experts of each rank, or a share of all
  }
  return result;
}

}  // namespace

TEST_CASE("inference: composed and coupled agree to the picosecond on drawn configurations") {
  require_composed_as_coupled(40, draw_inference);
}

TEST_CASE("inference: composed and coupled agree with pp 2, tp 2 and dp 2") {
  for (const auto inference : {workload::Inference::scoring, workload::Inference::generation}) {
    step::Configuration configuration = config_of({}, 2, 2, 4);
    configuration.strategy.stack.attention = workload::AttentionKernel::cudnn;
    configuration.model.dropout = false, configuration.model.inference = inference;
    if (inference == workload::Inference::generation)
      configuration.model.sequence = 1, configuration.model.cached_tokens = 500;
    const auto composed = run_configuration(configuration, step::Composition::composed);
    require_same_packets(composed, run_configuration(configuration, step::Composition::coupled));
    CHECK(composed.step_ps < run_configuration(config_of({}, 2, 2, 4), step::Composition::composed).step_ps);
  }
}

TEST_CASE("inference: bounds are below drawn steps") {
  require_bounds_below(150, draw_inference);
}

TEST_CASE("inference: one set of bounds tells steps that train from those that do not") {
  step::LowerBounds bounds;
  step::Configuration configuration = config_of({}, 2, 2, 4);
  configuration.model.dropout = false;
  const Time trains = bounds.of(configuration);
  configuration.model.inference = workload::Inference::scoring;
  CHECK(bounds.of(configuration) == step::lower_bound_ps(configuration));
  CHECK(bounds.of(configuration) < trains / 2);
}

TEST_CASE("inference: memory of scoring is that of weights, and of the working set of a layer or of logits") {
  step::Configuration configuration = config_of({}, 1, 1, 4);
  workload::Model& model = configuration.model;
  model.inference = workload::Inference::scoring, model.dropout = false, model.ffn_hidden = 4'096,
  model.vocabulary = 128;
  configuration.strategy.stack.attention = workload::AttentionKernel::cudnn;
  configuration.strategy.stack.fused_loss = false, configuration.strategy.stack.cross_entropy_fusion = true;
  const auto bytes = memory::footprint(model, configuration.strategy, configuration.gpu, workload::RankClass{0});
  CHECK(bytes.weights == 2 * workload::model_parameters(model));
  CHECK(bytes.gradients == 0);
  CHECK(bytes.optimizer == 0);
  CHECK(bytes.activations == 0);
  // The residual stream, and input and output of the activation function: 128 tokens of 512, and twice 4,096.
  CHECK(bytes.working == 2 * 128 * (512 + 2 * 4'096));
  model.vocabulary = 50'000;  // padded to 50,048; logits in fp32 and in 16 bits are more than that
  const auto wide = memory::footprint(model, configuration.strategy, configuration.gpu, workload::RankClass{0});
  CHECK(wide.working == 0);
  CHECK(wide.logits == 6 * 128 * 50'048);
}

TEST_CASE("inference: the caches of all micro-batches of a replica are in memory") {
  step::Configuration configuration = config_of({}, 2, 2, 4);
  configuration.strategy.stack.attention = workload::AttentionKernel::cudnn;
  workload::Model& model = configuration.model;
  model.inference = workload::Inference::generation, model.dropout = false;
  model.sequence = 1, model.cached_tokens = 511;
  const auto bytes = memory::footprint(model, configuration.strategy, configuration.gpu, workload::RankClass{0});
  // Two of four layers, keys and values of half of 8 heads of 64 in 16 bits, 512 tokens of 4 micro-batches.
  CHECK(bytes.activations == 2 * 2 * 2 * 4 * 64 * 512 * 4);
}

TEST_CASE("inference: a token of Llama 3 70B on 8 GPUs takes little more than its weights take to be read") {
  Cluster cluster;
  cluster.nodes = 1, cluster.gpus_per_node = 8, cluster.scale_up = 3'600'000'000'000;
  step::Configuration configuration = config_of(cluster, 8, 1, 1);
  workload::Model& model = configuration.model;
  model = {};
  model.layers = 80, model.hidden = 8'192, model.heads = 64, model.kv_heads = 8, model.ffn_hidden = 28'672;
  model.vocabulary = 128'256, model.norm = workload::Norm::rms_norm, model.activation = workload::Activation::swiglu;
  model.position = workload::Position::rotary, model.tied_embeddings = model.biases = model.dropout = false;
  model.inference = workload::Inference::generation, model.sequence = 1, model.cached_tokens = 1'000;
  compute::Gpu& h100 = configuration.gpu;
  h100.matrix_tflops = 989, h100.memory_gb_per_s = 3'350, h100.compute_units = 132, h100.clock_ghz = 1.7;
  h100.scale_up_gb_per_s = 450;
  configuration.strategy.stack.attention = workload::AttentionKernel::cudnn;
  configuration.strategy.stack.cuda_graphs = workload::CudaGraphs::all;
  const double step_s = seconds(run_at(configuration, network::Fidelity::analytic).step_ps);
  // The embedding is looked up, not read.
  const double weights = 2.0 * static_cast<double>(workload::model_parameters(model) - 128'256 * 8'192) / 8;
  const double read_s = weights / 3'350e9;
  CHECK(step_s > read_s);
  CHECK(step_s < 3 * read_s);
}

TEST_CASE("inference: closed forms and volumes know that no gradients come back") {
  step::Configuration configuration = config_of({}, 1, 4, 8);
  configuration.model.dropout = false;
  const auto trains = step::step_volumes(configuration.model, configuration.strategy, 4, {});
  configuration.model.inference = workload::Inference::scoring;
  const auto scores = step::step_volumes(configuration.model, configuration.strategy, 4, {});
  CHECK(trains.stages.inside > 0);
  CHECK(2 * scores.stages.inside == trains.stages.inside);
  CHECK(trains.replicas.inside > 0);
  CHECK(scores.replicas.inside == 0);
  CHECK(3 * scores.flops == Approx(trains.flops));
  const step::ClosedForm form = step::closed_form(configuration, step::fastest_links(*configuration.graph));
  CHECK(form.gradients_s == 0);
  CHECK(form.optimizer_s == 0);
  CHECK(form.step_s == Approx(seconds(run_at(configuration, network::Fidelity::analytic).step_ps)).epsilon(0.2));
}
