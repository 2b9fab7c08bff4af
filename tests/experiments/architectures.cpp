// Architectures of models: how they are read, what is refused, and the models of the catalog against published counts.
#include "experiments/key_contents/architecture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/step/run/simulation_context.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/tree/scalar.hpp"
#include "tests/experiments/catalog_models.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::workload::Model;

namespace {

import::Node parsed(const std::string& text){return import::parse_yaml(text, "model.yaml");
}

std::vector<std::uint32_t> layers_of(const std::string& layers) {
  return read_architecture(parsed("blocks: {a: attention, b: mlp}\nlayers: " + layers)).block_by_layer;
}

/// Returns the message with which an architecture is refused.
std::string refusal(const std::string& text) {
  try {
    read_architecture(parsed(text));
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("layers are a list of blocks, repeated or not, or a text of one-character names") {
  using Layers = std::vector<std::uint32_t>;
  CHECK(layers_of("[a, b, a]") == Layers{0, 1, 0});
  CHECK(layers_of("abba") == Layers{0, 1, 1, 0});
  CHECK(layers_of("[ab, b, aa]") == Layers{0, 1, 1, 0, 0});
  CHECK(layers_of("[{repeat: 2, of: [a, b]}, b]") == Layers{0, 1, 0, 1, 1});
  CHECK(layers_of("[{repeat: 2, of: [{repeat: 2, of: a}, b]}]") == Layers{0, 0, 1, 0, 0, 1});
  const auto named = read_architecture(parsed("blocks: {mixer: mamba2, b: mlp}\nlayers: [mixer, b]"));
  CHECK(named.block_by_layer == Layers{0, 1});
}

TEST_CASE("parts have options of their own, of their place on the residual stream, and of the model") {
  const auto spec = read_architecture(parsed(
      "blocks:\n  a: [{attention: {sinks: true, norms: both, window: 128}}, {mlp: {ffn_hidden: 64}}]\nlayers: [a]"));
  REQUIRE(spec.blocks.at(0).parts.size() == 2);
  const PartSpec& attention = spec.blocks[0].parts[0];
  CHECK(attention.own == core::OptionSet{{"sinks", true}});
  CHECK(attention.branch == core::OptionSet{{"norms", "both"}});
  CHECK(attention.of_model == core::OptionSet{{"window", std::int64_t{128}}});
  Model model;
  model.layers = 1, model.hidden = 32, model.heads = 4, model.ffn_hidden = 128;
  const auto architecture = make_architecture(spec, model);
  CHECK(architecture->blocks.at(0).branches.at(0).model->window == 128);
  CHECK(architecture->blocks[0].branches[1].model->window == 0);
  CHECK(architecture->blocks[0].branches[1].model->ffn_hidden == 64);
  CHECK(architecture->blocks[0].branches[0].model->ffn_hidden == 128);
}

TEST_CASE("what is no architecture is refused with its line") {
  CHECK(refusal("layers: [a]") == "model.yaml:1: an architecture needs 'blocks', a mapping of names to parts");
  CHECK(refusal("blocks: {a: mlp}") ==
        "model.yaml:1: an architecture needs 'layers', the blocks of its layers in their order");
  CHECK(refusal("blocks:\n  a: mpl\nlayers: [a]") == "model.yaml:2: unknown part 'mpl'; did you mean 'mlp'?");
  CHECK(refusal("blocks:\n  a: {mlp: {ffn_hiden: 3}}\nlayers: [a]") ==
        "model.yaml:2: unknown option 'ffn_hiden' of 'mlp'; did you mean 'ffn_hidden'?");
  CHECK(refusal("blocks:\n  a: {mamba2: {heads: many}}\nlayers: [a]").starts_with("model.yaml:2: 'heads' must be"));
  CHECK(refusal("blocks: {a: mlp}\nlayers:\n  - b").starts_with("model.yaml:3: there is no block 'b'"));
  CHECK(refusal("blocks: {a: mlp}\nlayers: []") == "model.yaml:2: 'layers' must have a layer");
  CHECK(refusal("blocks: {a: []}\nlayers: [a]") == "model.yaml:1: block 'a' has no parts");
  CHECK(refusal("blocks: {a: mlp}\nlayers: [{repeat: 10000, of: [a, a]}]") == "model.yaml:2: more than 10000 layers");
  CHECK(refusal("blocks: {a: mlp}\nlayers: [{repeat: 0, of: [a]}]").starts_with("model.yaml:2: 'repeat' must be"));
  CHECK(refusal("blocks: {a: mlp}\nlayers: [a]\nheads: 3").starts_with("model.yaml:3: "));
  CHECK(refusal("[a, b]").starts_with("model.yaml:1: "));
}

TEST_CASE("an architecture that does not fit its model is refused by a rule") {
  const auto sweep = [](const std::string& model, const std::string& strategy) {
    return "base:\n  model: " + model +
           "\n  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 8, nic_gbps: 400}\n  topology: fat_tree\n"
           "  transport: dcqcn\n  strategy: {global_batch: 8, micro_batch: " +
           (strategy.find("data_parts") == std::string::npos ? "1, " : "2, ") + strategy + "}\n";
  };
  const std::string sizes = "hidden: 256, vocabulary: 1024, ffn_hidden: 512, position: none";
  const auto with = [&](const std::string& layers, const std::string& architecture) {
    return "{layers: " + layers + ", " + sizes + ", architecture: " + architecture + "}";
  };
  CHECK_THROWS_WITH(read(sweep(with("2", "{blocks: {a: mlp}, layers: [a]}"), "tp: 1")),
                    Catch::Contains("'model.layers' is 2, but its architecture has 1 layers"));
  CHECK_THROWS_WITH(read(sweep(with("1", "{blocks: {a: attention}, layers: [a]}"), "tp: 1")),
                    Catch::Contains("block 'a': 'attention' needs 'heads'"));
  CHECK_THROWS_WITH(
      read(sweep(with("1", "{networks: {n: {heads: 6, kv_heads: 4, blocks: {a: attention}, layers: [a]}}}"), "tp: 1")),
      Catch::Contains("block 'n.a': kv_heads 4 do not divide heads 6"));
  CHECK_THROWS_WITH(read(sweep(with("1", "{blocks: {a: {mamba2: {heads: 6, groups: 2}}}, layers: [a]}"), "tp: 4")),
                    Catch::Contains("block 'a': heads 6 of mamba2, tp 4"));
  CHECK_NOTHROW(read(sweep(with("1", "{blocks: {a: {mamba2: {heads: 8, groups: 4}}}, layers: [a]}"), "tp: 4")));
  // Context-parallel ranks share heads as well; tensor-parallel ones that share samples do not.
  const auto sequenced = [&](const std::string& architecture) {
    return "{layers: 1, sequence: 256, " + sizes + ", architecture: " + architecture + "}";
  };
  CHECK_THROWS_WITH(
      read(sweep(sequenced("{blocks: {a: {mamba2: {heads: 6, groups: 2}}}, layers: [a]}"), "tp: 2, cp: 2")),
      Catch::Contains("block 'a': heads 6 of mamba2, tp 2 x cp 2"));
  CHECK_NOTHROW(read(sweep(sequenced("{blocks: {a: {mamba2: {heads: 6}}}, layers: [a]}"),
                           "tp: 2, cp: 2, sequence_parallel: true, data_parts: mixer")));
}

TEST_CASE("models of the catalog have the parameters that are published") {
  const Catalog catalog;
  // Totals of the tensors of released checkpoints (Hugging Face's safetensors metadata; torchvision's of images), of
  // text models where the catalog says so, and without multi-token prediction. Of Nemotron 3 Ultra only its name is
  // published; of DLRM the rows of its tables are, whose sum HugeCTR states, and of DLRM-DCNv2 nothing but these
  // (docs/facts/architectures.md, section 14).
  const std::map<std::string, std::int64_t> published{{"nemotron3-nano-30b-a3b", 31'577'940'288},
                                                      {"nemotron3-super-120b-a12b", 120'668'707'840},
                                                      {"mamba2-130m", 128'989'632},
                                                      {"mamba2-2.7b", 2'702'599'680},
                                                      {"gemma2-9b", 9'241'705'984},
                                                      {"gemma2-27b", 27'227'128'320},
                                                      {"gemma3-12b", 11'766'034'176},
                                                      {"gemma3-27b", 27'009'346'304},
                                                      {"minimax-m2", 228'689'764'864},
                                                      {"step3.7-flash", 196'956'130'368},
                                                      {"llama4-maverick", 400'711'848'960},
                                                      {"mimo-7b", 7'622'619'136},
                                                      {"qwen3-vl-2b", 2'127'532'032},
                                                      {"qwen3-vl-4b", 4'437'815'808},
                                                      {"qwen3-vl-8b", 8'767'123'696},
                                                      {"qwen3-vl-32b", 33'357'390'064},
                                                      {"qwen3-vl-30b-a3b", 31'070'754'032},
                                                      {"t5-small", 60'506'624},
                                                      {"t5-base", 222'903'552},
                                                      {"t5-large", 737'668'096},
                                                      {"t5-3b", 2'851'598'336},
                                                      {"t5-11b", 11'307'321'344},
                                                      {"t5-v1.1-small", 76'961'152},
                                                      {"t5-v1.1-base", 247'577'856},
                                                      {"t5-v1.1-large", 783'150'080},
                                                      {"t5-v1.1-xl", 2'849'757'184},
                                                      {"t5-v1.1-xxl", 11'135'332'352},
                                                      {"bert-base", 109'482'240},
                                                      {"bert-large", 335'141'888},
                                                      {"resnet-50", 25'557'032},
                                                      {"resnet-50-mlperf", 25'557'032},
                                                      {"resnet-101", 44'549'160},
                                                      {"resnet-152", 60'192'808},
                                                      {"vgg-16", 138'357'544},
                                                      {"vit-b-16", 86'567'656},
                                                      {"vit-l-16", 304'326'632},
                                                      {"vit-h-14", 632'045'800},
                                                      {"llava-1.5-7b", 7'063'427'072},
                                                      // 685,396,921,376 and 753,329,940,480 of the released files,
                                                      // less multi-token prediction (docs/facts/architectures.md)
                                                      {"deepseek-v3.2", 671'919'535'648},
                                                      // 290,944,616,402 and 1,598,839,674,782, less tables of numbers
                                                      // of experts and multi-token prediction (section 5)
                                                      {"deepseek-v4-flash", 284'332'240'471},
                                                      {"deepseek-v4-pro", 1'572'997'201'763},
                                                      // the language model, less what is left over of its files'
                                                      // format, and the tower (section 4)
                                                      {"kimi-k2.5", 1'026'408'235'864 - 3'416 + 471'143'920},
                                                      {"clip-vit-l-14", 427'616'513},
                                                      {"glm-5.2", 743'377'019'904},
                                                      {"nemotron3-ultra-550b-a55b", 550'000'000'000},
                                                      {"qwen3.5-27b", 26'895'998'464},
                                                      {"qwen3.5-35b-a3b", 34'660'610'688},
                                                      {"qwen3.5-122b-a10b", 122'111'526'912},
                                                      {"dlrm", 187'767'399 * std::int64_t{128} + 2'368'897},
                                                      {"dlrm-dcnv2", 26'135'627'264 + 16'044'545}};
  for (const auto& [name, count] : published) {
    CAPTURE(name);
    const auto parameters = static_cast<double>(core::workload::model_parameters(catalog_model(catalog, name)));
    CHECK(parameters == Approx(static_cast<double>(count)).epsilon(0.0015));
  }
  CHECK(static_cast<double>(core::workload::model_parameters(catalog_model(catalog, "qwen3-next-80b-a3b"))) ==
        Approx(80e9).epsilon(0.005));  // as published, in billions
  CHECK(static_cast<double>(core::workload::model_parameters(catalog_model(catalog, "mimo-v2-flash"))) ==
        Approx(309e9).epsilon(0.001));  // as published, in billions
  const core::workload::Model minimax = catalog_model(catalog, "minimax-text-01");
  CHECK(static_cast<double>(core::workload::model_parameters(minimax)) == Approx(456e9).epsilon(0.001));
  // Active without the table of tokens and the output layer.
  CHECK(static_cast<double>(core::workload::active_parameters(minimax) - 2 * 200'064 * std::int64_t{6'144}) ==
        Approx(45.9e9).epsilon(0.002));
  // Equal to the last vector; the others lack what their entries say.
  for (const char* name : {"nemotron3-nano-30b-a3b",
                           "nemotron3-super-120b-a12b",
                           "mamba2-130m",
                           "mamba2-2.7b",
                           "gemma2-9b",
                           "gemma2-27b",
                           "gemma3-12b",
                           "gemma3-27b",
                           "minimax-m2",
                           "step3.7-flash",
                           "llama4-maverick",
                           "mimo-7b",
                           "qwen3.5-27b",
                           "qwen3.5-35b-a3b",
                           "qwen3.5-122b-a10b",
                           "vit-b-16",
                           "vit-l-16",
                           "vit-h-14",
                           "llava-1.5-7b",
                           "clip-vit-l-14",
                           "kimi-k2.5",
                           "deepseek-v4-flash",
                           "deepseek-v4-pro",
                           "dlrm",
                           "dlrm-dcnv2",
                           "resnet-50",
                           "resnet-50-mlperf",
                           "resnet-101",
                           "resnet-152",
                           "vgg-16"}) {
    CAPTURE(name);
    CHECK(core::workload::model_parameters(catalog_model(catalog, name)) == published.at(name));
  }
}

TEST_CASE("tokens visit as many parameters as their authors say") {
  const Catalog catalog;
  const auto active = [&](const std::string& name) {
    return static_cast<double>(core::workload::active_parameters(catalog_model(catalog, name))) / 1e9;
  };
  const auto table = [&](const std::string& name) {
    const Model model = catalog_model(catalog, name);
    return static_cast<double>(model.vocabulary * model.hidden) / 1e9;
  };
  CHECK(active("nemotron3-nano-30b-a3b") == Approx(3.6).margin(0.05));  // its card, with the table of tokens
  CHECK(active("nemotron3-super-120b-a12b") == Approx(12.7).margin(0.1));
  CHECK(active("nemotron3-ultra-550b-a55b") - table("nemotron3-ultra-550b-a55b") == Approx(55).margin(0.6));
  CHECK(active("llama4-maverick") == Approx(17).margin(0.3));
  CHECK(active("deepseek-v4-flash") - table("deepseek-v4-flash") == Approx(13).margin(0.5));
  CHECK(active("deepseek-v4-pro") - table("deepseek-v4-pro") == Approx(49).margin(0.5));
}

namespace {

/// Evaluates + * ( ) and floor(a / b) over names, the plain way.
class Evaluator {
 public:
  Evaluator(const std::string& text, const std::map<std::string, double>& names) : text_(text), names_(names) {}
  double value() {
    const double result = sum();
    REQUIRE(at_ == text_.size());
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char symbol) {
    skip();
    if (at_ >= text_.size() || text_[at_] != symbol) return false;
    ++at_;
    return true;
  }
  double sum() {
    double result = product();
    for (;;) {
      if (take('+'))
        result += product();
      else if (take('-'))
        result -= product();
      else
        return result;
    }
  }
  double product() {
    double result = factor();
    for (;;) {
      if (take('*'))
        result *= factor();
      else if (take('/'))
        result /= factor();
      else
        return result;
    }
  }
  double factor() {
    if (take('(')) {
      const double result = sum();
      REQUIRE(take(')'));
      return result;
    }
    skip();
    const std::size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string word = text_.substr(first, at_ - first);
    REQUIRE(!word.empty());
    if (word == "floor") {
      REQUIRE(take('('));
      const double result = std::floor(sum());
      REQUIRE(take(')'));
      return result;
    }
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return std::stod(word);
    CAPTURE(word);
    REQUIRE(names_.count(word) == 1);
    return names_.at(word);
  }

  std::string text_;
  const std::map<std::string, double>& names_;
  std::size_t at_ = 0;
};

/// Numbers of the model's options, of a part's own, and what formulas call key_width, value_width and pairs.
std::map<std::string, double> names_of(const Model& model, const core::OptionSet& own) {
  std::map<std::string, double> names;
  for (const auto& [name, value] : core::workload::model_options().read(model))
    if (const auto* number = std::get_if<std::int64_t>(&value)) names[name] = static_cast<double>(*number);
  names["kv_heads"] = static_cast<double>(model.kv()), names["ffn_hidden"] = static_cast<double>(model.ffn());
  names["head_dim"] = static_cast<double>(model.head_width());
  names["expert_ffn_hidden"] = static_cast<double>(model.expert_ffn());
  names["key_width"] = static_cast<double>(model.key_width());
  names["value_width"] = static_cast<double>(model.value_width());
  for (const auto& [name, value] : own)
    if (const auto* number = std::get_if<std::int64_t>(&value)) names[name] = static_cast<double>(*number);
  const double s = names["sequence"], reach = model.window > 0 ? std::min<double>(names["window"], s) : s;
  names["pairs"] = std::floor(reach * (2 * s - reach) / 2);  // whole ones, also of 77 tokens
  return names;
}

}  // namespace

TEST_CASE("the formulas of parts give the numbers of parts") {
  const Catalog catalog;
  std::set<std::string> types;
  for (const auto& [name, entry] : catalog.entries("models")) {
    CAPTURE(name);
    Model model = catalog_model(catalog, name);
    if (!model.architecture) {  // as a block of parts, so that all have their options at hand
      model.architecture_text = model.has_experts() ? "{blocks: {a: [attention, experts]}, layers: [a]}"
                                                    : "{blocks: {a: [attention, mlp]}, layers: [a]}";
      model.layers = 1;
      model.architecture = architecture_of(model);
    }
    const ArchitectureSpec spec = read_architecture(parsed(model.architecture_text));
    for (std::size_t b = 0; b < spec.blocks.size(); ++b)
      for (std::size_t p = 0; p < spec.blocks[b].parts.size(); ++p) {
        const PartSpec& written = spec.blocks[b].parts[p];
        const core::workload::Branch& branch = model.architecture->blocks[b].branches[p];
        core::OptionSet own;
        for (const core::OptionInfo& info : written.type->options) own[info.name] = info.default_value;
        for (const auto& [key, value] : written.own) own[key] = value;
        const auto formulas = branch.part->formulas(*branch.model);
        const auto names = names_of(*branch.model, own);
        CAPTURE(branch.type);
        types.insert(branch.type);
        const auto counts = branch.part->parameters(*branch.model);
        CHECK(Evaluator(formulas.parameters, names).value() == static_cast<double>(counts.sharded + counts.replicated));
        if (branch.part->has_experts())
          CHECK(Evaluator(formulas.expert_parameters, names).value() ==
                static_cast<double>(branch.part->expert_parameters(*branch.model, 1)));
        std::vector<core::workload::Operator> operators;
        core::workload::Strategy one;
        one.stack.attention = core::workload::AttentionKernel::cudnn;
        branch.part->add_operators(
            operators, {*branch.model, one, {branch.part->has_experts(), branch.model->window > 0, 0, 0}, 0});
        double flops = 0;
        for (const auto& each : operators)
          for (const auto& work : each.forward)
            if (const auto* kernel = work.kernel()) flops += static_cast<double>(kernel->shape.flops);
        const bool chunked =
            own.count("chunk") > 0 && branch.type == "attention" && std::get<std::int64_t>(own["chunk"]) > 0;
        const bool whole_pairs = own.count("causal") > 0 && !std::get<bool>(own["causal"]);
        if (!chunked && !whole_pairs) {
          // Experts get whole tokens, all as many: the number is rounded up.
          const double tolerance = branch.part->has_experts() ? 0.01 : 1e-9;
          CHECK(Evaluator(formulas.forward_flops, names).value() == Approx(flops).epsilon(tolerance));
        }
      }
  }
  for (const core::workload::PartType& type : core::workload::part_types()) CHECK(types.count(type.name) == 1);
}

TEST_CASE("networks have widths, tokens and blocks of their own") {
  const auto spec = read_architecture(
      parsed("networks:\n"
             "  vision: {hidden: 64, sequence: 16, heads: 2, blocks: {a: [attention, mlp]}, layers: aa}\n"
             "  text: {blocks: {a: [attention, mlp]}, layers: [a]}\n"));
  REQUIRE(spec.blocks.size() == 2);
  CHECK(spec.blocks[0].name == "vision.a");
  CHECK(spec.blocks[1].name == "text.a");
  CHECK(spec.block_by_layer == std::vector<std::uint32_t>{0, 0, 1});
  Model model;
  model.layers = 3, model.hidden = 128, model.heads = 4, model.ffn_hidden = 256, model.sequence = 32;
  const auto architecture = make_architecture(spec, model);
  CHECK(architecture->blocks[0].branches[0].model->hidden == 64);
  CHECK(architecture->blocks[0].branches[1].model->sequence == 16);
  CHECK(architecture->blocks[1].branches[0].model->hidden == 128);
  CHECK(refusal("networks:\n  vision: {hiden: 64, blocks: {a: mlp}, layers: a}") ==
        "model.yaml:2: unknown option 'hiden' of a network; did you mean 'hidden'?");
  CHECK(refusal("networks:\n  vision: {blocks: {a: mlp}, layers: a}\nlayers: [a]").starts_with("model.yaml:3: "));
}

namespace {

/// Checks that a step of blocks with this part and a network takes as long composed as with all packets in one event
/// loop. `needed` are options of the model, `layout` those of the strategy.
void check_composed(const std::string& part, const std::string& needed, const std::string& layout) {
  const std::string text =
      "base:\n  model: {" + needed +
      "layers: 4, hidden: 64, heads: 8, ffn_hidden: 128, vocabulary: 512, sequence: 256, experts: 4, "
      "shared_ffn_hidden: 64, architecture: {blocks: {a: {" +
      part +
      "}, b: mlp}, layers: abab}}\n"
      "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
      "  topology: {rail_optimized: {oversubscription: 1}}\n  transport: dcqcn\n"
      "  strategy: {" +
      layout + ", micro_batch: 1, global_batch: 8}\n";
  CAPTURE(part, layout);
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  std::map<std::string, core::Time> steps;
  for (const std::string composition : {"composed", "coupled"}) {
    GraphCache graphs;
    const Sweep sweep = read(text, {"composition=" + composition});
    const auto config = configure(sweep.experiments.at(0), graphs);
    steps[composition] = context.run(context.compile(config), results).step_ps;
  }
  CHECK(steps["composed"] > 0);
  CHECK(steps["composed"] == steps["coupled"]);
}

}  // namespace

TEST_CASE("a step of every part takes as long composed as with all packets in one event loop") {
  const Model model = [] {
    Model sizes;
    sizes.hidden = 64, sizes.heads = 8;
    return sizes;
  }();
  for (const core::workload::PartType& type : core::workload::part_types()) {
    const auto part = type.make(type.example);
    const auto sizes = part->sharded_sizes(model);
    if (sizes.empty()) continue;  // ends of networks, which send nothing
    const bool divided =
        std::any_of(sizes.begin(), sizes.end(), [](const core::workload::ShardedSize& each) { return each.size > 1; });
    std::string own, needed;
    for (const auto& [key, value] : type.example)
      own += (own.empty() ? "" : ", ") + key + ": " + import::value_text(value);
    for (const auto& [key, value] : type.example_model) needed += key + ": " + import::value_text(value) + ", ";
    const std::string written = type.name + ": {" + own + "}";
    check_composed(written, needed, divided ? "tp: 2, sequence_parallel: true, ep: 2" : "tp: 1");
    if (!divided || !part->shares_context() || part->tables() != nullptr) continue;
    const std::string context = "tp: 2, cp: 2, sequence_parallel: true, cp_comm: ";
    check_composed(written, needed, context + "ring");
    if (type.name.ends_with("attention") && type.name != "linear_attention" && type.name != "sparse_attention")
      for (const char* exchange : {"all_gather", "ulysses", "gathered_blocks"})
        check_composed(written, needed, context + exchange + ", stack: {attention: flash}");
  }
}
