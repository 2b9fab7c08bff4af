#include "experiments/torchtitan/own_flavor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "core/base/error.hpp"
#include "core/workload/model/group_limits.hpp"
#include "experiments/model_keys/carried.hpp"
#include "experiments/torchtitan/python_values.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

using core::workload::Activation;
using core::workload::Model;
using core::workload::Norm;
using core::workload::Position;

/// A model of torchtitan: its registry, and the class of its arguments.
struct Kind {
  const char *model, *registry, *arguments;
};
constexpr Kind kKinds[] = {{"llama3", "llama3_args", "TransformerModelArgs"},
                           {"qwen3", "qwen3_args", "Qwen3ModelArgs"},
                           {"deepseek_v3", "deepseekv3_args", "DeepSeekV3ModelArgs"}};
constexpr const char* kExperts = "MoEArgs";
constexpr const char* kComment = "# ";

/// Two thirds of 4 x hidden, times the factor, in whole multiples: FeedForward of llama3.
std::int64_t llama_width(std::int64_t hidden, double factor, std::int64_t multiple) {
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(2 * 4 * hidden / 3));
  return (width + multiple - 1) / multiple * multiple;
}

/// Returns the largest multiple, and a factor in whole hundredths, that make this width; nothing if none do.
std::optional<std::pair<double, std::int64_t>> llama_width_arguments(std::int64_t hidden, std::int64_t width) {
  for (std::int64_t multiple = 4'096; multiple >= 1; multiple /= 2) {
    if (width % multiple != 0) continue;
    for (int hundredths = 100; hundredths <= 400; ++hundredths)
      if (const double factor = hundredths / 100.0; llama_width(hidden, factor, multiple) == width)
        return std::pair(factor, multiple);
    for (int hundredths = 99; hundredths >= 10; --hundredths)
      if (const double factor = hundredths / 100.0; llama_width(hidden, factor, multiple) == width)
        return std::pair(factor, multiple);
  }
  return std::nullopt;
}

bool is_decoder(const Model& model) {
  return model.norm == Norm::rms_norm && model.activation == Activation::swiglu && model.position == Position::rotary &&
         !model.biases && !model.dropout && model.window == 0;
}

std::string value_of(const std::string& carried, const std::string& name, const std::string& otherwise) {
  for (const models::CarriedArgument& one : models::carried_in(carried))
    if (one.name == name) return one.values.empty() ? "true" : one.values.front();
  return otherwise;
}

/// Returns the model of torchtitan whose arguments say these sizes; null if none does.
const Kind* kind_of(const Model& model) {
  if (!is_decoder(model)) return nullptr;
  if (model.is_latent()) {
    const bool fits = model.has_experts() && !model.tied_embeddings && !model.query_key_norm &&
                      model.shared_ffn_hidden % model.expert_ffn() == 0;
    return fits ? &kKinds[2] : nullptr;
  }
  if (model.has_experts() && (model.dense_layers > 0 || model.shared_ffn_hidden > 0)) return nullptr;
  const bool llama = !model.has_experts() && !model.query_key_norm && !model.tied_embeddings &&
                     model.head_width() * model.heads == model.hidden &&
                     llama_width_arguments(model.hidden, model.ffn());
  return llama ? &kKinds[0] : &kKinds[1];
}

using Arguments = std::vector<std::pair<std::string, std::string>>;

std::string python(bool value) {
  return value ? "True" : "False";
}

/// The arguments of experts, with how tokens are given to them.
std::string experts_text(const Flavor& flavor) {
  const Model& model = flavor.sizes;
  const bool sigmoid = value_of(flavor.carried, "moe-router-score-function", "softmax") == "sigmoid";
  const bool normed = value_of(flavor.carried, "moe-router-pre-softmax", "").empty();
  std::string text = fmt::format(
      "{}(num_experts={}, num_shared_experts={}, top_k={}, score_func=\"{}\", route_norm={}, route_scale={}", kExperts,
      model.experts, model.shared_ffn_hidden / model.expert_ffn(), model.experts_per_token,
      sigmoid ? "sigmoid" : "softmax", python(normed),
      value_of(flavor.carried, "moe-router-topk-scaling-factor", "1.0"));
  if (core::workload::limits_groups(model))
    text += fmt::format(", num_expert_groups={}, num_limited_groups={}", model.expert_groups, model.groups_per_token);
  return text + ", score_before_experts=False)";
}

Arguments arguments_of(const Flavor& flavor) {
  const Model& model = flavor.sizes;
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  Arguments all{{"dim", number(model.hidden)},
                {"n_layers", number(model.layers)},
                {"n_heads", number(model.heads)},
                {"vocab_size", number(model.vocabulary)}};
  if (flavor.model == "llama3") {
    const auto [factor, multiple] = llama_width_arguments(model.hidden, model.ffn()).value();
    all.insert(all.end(), {{"n_kv_heads", number(model.kv())},
                           {"ffn_dim_multiplier", fmt::format("{}", factor)},
                           {"multiple_of", number(multiple)}});
  } else if (flavor.model == "qwen3") {
    all.insert(all.end(), {{"n_kv_heads", number(model.kv())},
                           {"head_dim", number(model.head_width())},
                           {"hidden_dim", number(model.ffn())},
                           {"qk_norm", python(model.query_key_norm)},
                           {"enable_weight_tying", python(model.tied_embeddings)}});
    if (model.has_experts())
      all.insert(all.end(), {{"moe_enabled", "True"}, {"moe_inter_dim", number(model.expert_ffn())}});
  } else {
    all.insert(all.end(), {{"inter_dim", number(model.ffn())},
                           {"moe_inter_dim", number(model.expert_ffn())},
                           {"n_dense_layers", number(model.dense_layers)},
                           {"q_lora_rank", number(model.query_rank)},
                           {"kv_lora_rank", number(model.kv_rank)},
                           {"qk_nope_head_dim", number(model.head_width())},
                           {"qk_rope_head_dim", number(model.rotary_dim)},
                           {"v_head_dim", number(model.value_width())}});
    if (const std::string factor = value_of(flavor.carried, "rotary-scaling-factor", ""); !factor.empty())
      all.emplace_back("rope_factor", factor);
    if (const std::string scale = value_of(flavor.carried, "mscale", ""); !scale.empty())
      all.emplace_back("mscale", scale);
  }
  if (model.has_experts()) all.emplace_back("moe_args", experts_text(flavor));
  for (const auto& [argument, name] : {std::pair("rotary-base", "rope_theta"), {"norm-epsilon", "norm_eps"}})
    if (const std::string value = value_of(flavor.carried, argument, ""); !value.empty()) all.emplace_back(name, value);
  if (flavor.model == "llama3")
    all.emplace_back("rope_scaling_args", fmt::format("RoPEScalingArgs(scaling_factor={})",
                                                      value_of(flavor.carried, "rope-scaling-factor", "1.0")));
  return all;
}

/// Reads the arguments back, each once.
class ArgumentReader {
 public:
  ArgumentReader(const Value& call, std::string file) : call_(call), file_(std::move(file)) {}

  Flavor flavor(const Kind& kind, const std::string& name) const;

 private:
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw core::InputError(fmt::format("'{}' of {} {}", name, call_.text, what), file_, call_.line);
  }
  std::int64_t whole(const std::string& name, std::int64_t otherwise) const;
  std::string figure(const std::string& name) const;
  bool flag(const std::string& name) const {
    const Value* value = call_.field(name);
    return value != nullptr && value->kind == ValueKind::boolean && value->integer != 0;
  }
  void read_experts(Model& model, std::string& carried) const;

  const Value& call_;
  std::string file_;
};

std::int64_t ArgumentReader::whole(const std::string& name, std::int64_t otherwise) const {
  constexpr std::int64_t kLargest = 100'000'000;
  const Value* value = call_.field(name);
  if (value == nullptr || value->kind == ValueKind::none) return otherwise;
  if (value->kind != ValueKind::integer || value->integer < 0 || value->integer > kLargest)
    fail(name, "must be a whole number");
  return value->integer;
}

/// Returns a number as it is written; empty if it is not given.
std::string ArgumentReader::figure(const std::string& name) const {
  const Value* value = call_.field(name);
  if (value == nullptr || value->kind == ValueKind::none) return "";
  if (value->kind == ValueKind::integer) return std::to_string(value->integer);
  if (value->kind != ValueKind::real || !models::is_carried_value(value->text)) fail(name, "must be a number");
  return value->text;
}

void ArgumentReader::read_experts(Model& model, std::string& carried) const {
  const Value* experts = call_.field("moe_args");
  if (experts == nullptr || !experts->is_object(kExperts)) fail("moe_args", fmt::format("must be {}(…)", kExperts));
  const ArgumentReader inner(*experts, file_);
  model.experts = inner.whole("num_experts", 8), model.experts_per_token = inner.whole("top_k", 1);
  model.expert_ffn_hidden = whole("moe_inter_dim", 0);
  model.shared_ffn_hidden = inner.whole("num_shared_experts", 1) * model.expert_ffn_hidden;
  const Value* scores = experts->field("score_func");
  if (scores == nullptr || scores->text != "softmax")
    carried += " moe-router-score-function=sigmoid";
  else if (!inner.flag("route_norm"))
    carried += " moe-router-pre-softmax";
  const std::string scale = inner.figure("route_scale");
  if (!scale.empty() && std::strtod(scale.c_str(), nullptr) != 1) carried += " moe-router-topk-scaling-factor=" + scale;
  model.expert_groups = std::max<std::int64_t>(inner.whole("num_expert_groups", 1), 1);
  model.groups_per_token = model.expert_groups > 1 ? inner.whole("num_limited_groups", 0) : 0;
}

Flavor ArgumentReader::flavor(const Kind& kind, const std::string& name) const {
  Flavor flavor;
  flavor.model = kind.model, flavor.name = name;
  Model& model = flavor.sizes;
  model.norm = Norm::rms_norm, model.activation = Activation::swiglu, model.position = Position::rotary;
  model.tied_embeddings = flag("enable_weight_tying"), model.biases = model.dropout = false;
  model.hidden = whole("dim", 0), model.layers = whole("n_layers", 0), model.heads = whole("n_heads", 0);
  model.vocabulary = whole("vocab_size", 0);
  for (const char* needed : {"dim", "n_layers", "n_heads", "vocab_size"})
    if (whole(needed, 0) == 0) fail(needed, "is missing");
  std::string carried;
  if (flavor.model == "llama3") {
    const std::string factor = figure("ffn_dim_multiplier");
    const std::int64_t multiple = std::max<std::int64_t>(whole("multiple_of", 256), 1);
    model.kv_heads = whole("n_kv_heads", model.heads);
    model.ffn_hidden = llama_width(model.hidden, factor.empty() ? 1 : std::strtod(factor.c_str(), nullptr), multiple);
    const Value* scaling = call_.field("rope_scaling_args");
    if (scaling != nullptr && scaling->kind == ValueKind::object) {
      const std::string stretched = ArgumentReader(*scaling, file_).figure("scaling_factor");
      if (!stretched.empty() && std::strtod(stretched.c_str(), nullptr) != 1)
        carried += " use-rope-scaling rope-scaling-factor=" + stretched;
    }
  } else if (flavor.model == "qwen3") {
    model.kv_heads = whole("n_kv_heads", 8), model.head_dim = whole("head_dim", 128);
    model.ffn_hidden = whole("hidden_dim", 3'072);
    const Value* norm = call_.field("qk_norm");
    model.query_key_norm = norm == nullptr || norm->integer != 0;
    if (flag("moe_enabled")) read_experts(model, carried);
  } else {
    model.attention = core::workload::Attention::latent;
    model.ffn_hidden = whole("inter_dim", 10'944), model.dense_layers = whole("n_dense_layers", 1);
    model.query_rank = whole("q_lora_rank", 0), model.kv_rank = whole("kv_lora_rank", 512);
    model.head_dim = whole("qk_nope_head_dim", 128), model.rotary_dim = whole("qk_rope_head_dim", 64);
    model.value_dim = whole("v_head_dim", 128);
    read_experts(model, carried);
    carried += " rope-type=yarn";
    if (const std::string factor = figure("rope_factor"); !factor.empty())
      carried += " rotary-scaling-factor=" + factor;
    if (const std::string scale = figure("mscale"); !scale.empty()) carried += " mscale=" + scale;
  }
  if (const std::string base = figure("rope_theta"); !base.empty()) carried += " rotary-base=" + base;
  if (const std::string epsilon = figure("norm_eps"); !epsilon.empty()) carried += " norm-epsilon=" + epsilon;
  flavor.carried = models::carried_over("", carried);
  return flavor;
}

}  // namespace

std::optional<Flavor> own_flavor(const Model& sizes, const std::string& carried, const std::string& name) {
  const Kind* kind = kind_of(sizes);
  if (kind == nullptr) return std::nullopt;
  Flavor flavor;
  flavor.model = kind->model, flavor.name = name, flavor.sizes = sizes, flavor.carried = carried;
  return flavor;
}

std::string own_flavor_text(const Flavor& flavor) {
  const Kind& kind =
      *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) { return flavor.model == one.model; });
  std::string text = fmt::format(
      "# torchtitan has no flavor of this model: this adds one to torchtitan/models/{}/__init__.py\n{}{}[\"{}\"] = "
      "{}(\n",
      flavor.model, kComment, kind.registry, flavor.name, kind.arguments);
  for (const auto& [name, value] : arguments_of(flavor)) text += fmt::format("{}    {}={},\n", kComment, name, value);
  return text + kComment + ")\n";
}

std::vector<Flavor> own_flavors_in(const std::string& text, const std::string& file) {
  std::vector<Flavor> all;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    for (const Kind& kind : kKinds) {
      const std::string begin = fmt::format("{}{}[\"", kComment, kind.registry);
      const std::size_t end = line.find("\"] = ");
      if (!line.starts_with(begin) || end == std::string::npos) continue;
      const std::string name = line.substr(begin.size(), end - begin.size());
      std::string source = "def own():\n    return " + line.substr(end + 5) + "\n";
      const int first = number;
      while (std::getline(lines, line) && line.starts_with('#')) {
        ++number;
        source += line.substr(1) + "\n";
        if (line == "# )") break;
      }
      Value call;
      try {
        call = PythonFile(source, file).returned("own");
      } catch (const core::InputError& error) {
        throw core::InputError(fmt::format("the entry of the registry is no Python: {}", error.what()), file, first);
      }
      if (!call.is_object(kind.arguments))
        throw core::InputError(fmt::format("an entry of {} is {}(…)", kind.registry, kind.arguments), file, first);
      call.line = first;
      all.push_back(ArgumentReader(call, file).flavor(kind, name));
    }
  }
  return all;
}

}  // namespace manyworlds::experiments::jobs::torchtitan
