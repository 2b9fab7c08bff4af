// Convolutional networks of the catalog: FLOPs against plain lists of their layers, what is refused, and data
// parallelism.
#include <catch2/catch.hpp>

#include "core/step/run/simulation_context.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/experiments/catalog_models.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::workload::Model;

namespace {

/// A matrix or convolution: rows and columns of its output, channels, and the window.
struct Layer {
  std::int64_t rows, in, out, kernel;
  std::int64_t macs() const { return rows * rows * in * out * kernel * kernel; }
};

/// torchvision's resnet.py: a stem, stages of bottlenecks whose first one has the stride and a projection, one matrix.
std::vector<Layer> resnet_layers(const std::vector<std::int64_t>& blocks) {
  std::vector<Layer> layers{{112, 3, 64, 7}};
  std::int64_t in = 64, rows = 56;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t planes = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < blocks[stage]; ++block) {
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      layers.push_back({rows, in, planes, 1});
      rows /= stride;
      layers.push_back({rows, planes, planes, 3});
      layers.push_back({rows, planes, 4 * planes, 1});
      if (block == 0) layers.push_back({rows, in, 4 * planes, 1});
      in = 4 * planes;
    }
  }
  layers.push_back({1, 2048, 1000, 1});
  return layers;
}

/// torchvision's vgg.py, configuration D.
std::vector<Layer> vgg_layers() {
  std::vector<Layer> layers;
  std::int64_t in = 3, rows = 224;
  for (const auto& [width, count] : {std::pair(64, 2), {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    for (int i = 0; i < count; ++i) layers.push_back({rows, in, width, 3}), in = width;
    rows /= 2;
  }
  for (const Layer& matrix : {Layer{1, 25'088, 4'096, 1}, Layer{1, 4'096, 4'096, 1}, Layer{1, 4'096, 1'000, 1}})
    layers.push_back(matrix);
  return layers;
}

std::int64_t macs_of(const std::vector<Layer>& layers) {
  std::int64_t sum = 0;
  for (const Layer& each : layers) sum += each.macs();
  return sum;
}

std::int64_t forward_flops(const Model& model) {
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const auto& each : core::workload::layer_operators(model, {}, model.layer_kind(layer)))
      for (const auto& work : each.forward)
        if (const auto* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

std::string document(const std::string& model, const std::string& strategy) {
  return "base:\n  model: " + model +
         "\n  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
         "  topology: {rail_optimized: {oversubscription: 1}}\n  transport: dcqcn\n  strategy: {" +
         strategy + "}\n";
}

}  // namespace

TEST_CASE("convolutional networks take the FLOPs of their lists of layers") {
  struct Network {
    const char* name;
    std::vector<Layer> layers;
    double published_gmacs;  // torchvision's weights metadata, _ops
  };
  for (const Network& each :
       {Network{"resnet-50", resnet_layers({3, 4, 6, 3}), 4.089},
        Network{"resnet-50-mlperf", resnet_layers({3, 4, 6, 3}), 4.089},
        Network{"resnet-101", resnet_layers({3, 4, 23, 3}), 7.801},
        Network{"resnet-152", resnet_layers({3, 8, 36, 3}), 11.514}, Network{"vgg-16", vgg_layers(), 15.47}}) {
    CAPTURE(each.name);
    const Model model = catalog_model(Catalog(), each.name);
    const std::int64_t macs = macs_of(each.layers);
    CHECK(static_cast<double>(macs) / 1e9 == Approx(each.published_gmacs).epsilon(0.001));
    CHECK(forward_flops(model) == 2 * macs);
    // Both gradients take as many, but for that of the images, which nobody needs.
    CHECK(core::workload::model_flops_per_sequence(model) == 6 * macs - 2 * each.layers.front().macs());
  }
}

TEST_CASE("parallelism that would divide images is refused by name") {
  const auto of = [](const std::string& strategy) { return document("resnet-50", "global_batch: 64, " + strategy); };
  CHECK_THROWS_WITH(read(of("micro_batch: 8, tp: 2")),
                    Catch::Contains("block 'conv1.stem': tensor-parallel shares 1 of convolution, tp 2"));
  CHECK_THROWS_WITH(read(of("micro_batch: 8, cp: 2")), Catch::Contains("context_of_states"));
  CHECK_NOTHROW(read(of("micro_batch: 8, pp: 2")));  // stages send what they end in
  CHECK_NOTHROW(read(of("micro_batch: 8")));
  CHECK_THROWS_WITH(
      read(document("{layers: 1, hidden: 12, vocabulary: 1, sequence: 4, architecture: {embedding: false, "
                    "head: false, blocks: {a: {convolution: {groups: 5}}}, layers: [a]}}",
                    "global_batch: 8, micro_batch: 1")),
      Catch::Contains("'convolution' needs 'groups that divide its channels'"));
}

TEST_CASE("replicas of convolutional networks take as long composed as with all packets in one event loop") {
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  const std::string synchronised =
      "{layers: 2, hidden: 64, vocabulary: 1, sequence: 49, architecture: {embedding: false, head: false, blocks: {a: "
      "[{bottleneck: {synchronised: true}}, {batch_norm: {synchronised: true}}]}, layers: aa}}";
  for (const std::string& model : {std::string("resnet-50"), synchronised})
    for (const char* layout : {"zero: 0", "zero: 1", "zero: 3", "pp: 2, split: by_time"}) {
      CAPTURE(model, layout);
      std::map<std::string, core::Time> steps;
      for (const std::string composition : {"composed", "coupled"}) {
        GraphCache graphs;
        const Sweep sweep = read(document(model, std::string("micro_batch: 8, global_batch: 128, ") + layout),
                                 {"composition=" + composition});
        steps[composition] = context.run(context.compile(configure(sweep.experiments.at(0), graphs)), results).step_ps;
      }
      CHECK(steps["composed"] > 0);
      CHECK(steps["composed"] == steps["coupled"]);
    }
}
