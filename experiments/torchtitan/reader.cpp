// Model, software, experts and recomputation of torchtitan's job file, with the defaults of v0.2.2's JobConfig.
#include "experiments/torchtitan/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/model_keys/carried.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/torchtitan/key_table.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Reader::Reader(const std::vector<GivenKey>& keys, Version version, const JobOptions& options)
    : version_(std::move(version)), keys_(known_keys(), with_names_of_today(keys)), options_(options) {}

Job Reader::read() {
  job_.kind = version_.kind;
  keys_.check(job_);
  flavor_ = &flavor();
  read_ranks();
  read_software();
  read_model();
  read_precision();
  read_experts();
  read_pipeline();
  read_batch();
  read_recompute();
  read_sharding();
  return std::move(job_);
}

void Reader::set(const std::string& key, const std::string& value, const std::string& because) {
  job_.settings.push_back({key, value, keys_.place(because)});
}

void Reader::set(const std::string& key, std::int64_t value, const std::string& because) {
  set(key, std::to_string(value), because);
}

void Reader::set_flag(const std::string& key, bool value, const std::string& because) {
  set(key, std::string(value ? "true" : "false"), because);
}

const Flavor& Reader::flavor() const {
  const std::string model = keys_.text("model.name", "llama3"), name = keys_.text("model.flavor", "debugmodel");
  const Flavor* found = find_flavor(model, name);
  for (const Flavor& one : version_.own)
    if (one.model == model && one.name == name) found = &one;
  if (found == nullptr && flavor_names(model).empty())
    keys_.fail("model.name", fmt::format(" '{}' is no model of torchtitan that is known here{}", model,
                                         suggestion(model, model_names())));
  if (found == nullptr)
    keys_.fail("model.flavor",
               fmt::format(" '{}' is no flavor of {}{}", name, model, suggestion(name, flavor_names(model))));
  if (!found->refused.empty()) keys_.fail("model.flavor", fmt::format(" {} of {}: {}", name, model, found->refused));
  return *found;
}

void Reader::read_model() {
  const std::string norm = keys_.text("model.norm_type");
  for (const auto& [option, value] : settings_of(*flavor_))
    if (option != "norm" || norm.empty()) set("model." + option, value, "model.flavor");
  if (!flavor_->carried.empty()) set(models::kCarriedKey, flavor_->carried, "model.flavor");
  set("model.sequence", keys_.count("training.seq_len", 2'048, 1), "training.seq_len");
  if (!norm.empty())
    set("model.norm",
        keys_.translated("model.norm_type", norm,
                         "rmsnorm=rms_norm compiled_rmsnorm=rms_norm fused_rmsnorm=rms_norm layernorm=layer_norm "
                         "np_layernorm=layer_norm"),
        "model.norm_type");
}

/// Compiled or not is which stack it is: without the compiler rotary positions, SwiGLU and RMSNorm are several kernels,
/// the last unless it is Triton's.
void Reader::read_software() {
  const bool old = keys_.flag("training.compile", false), enabled = keys_.flag("compile.enable", old);
  const std::vector<std::string> components = keys_.words("compile.components", {"model", "loss"});
  for (const std::string& one : components)
    if (one != "model" && one != "loss" && enabled)
      keys_.fail("compile.components", fmt::format(" '{}' is not modelled; known are model, loss", one));
  compiled_ = enabled && has(components, "model");
  job_.stack = compiled_ ? "torchtitan" : "torchtitan-eager";
  set_flag("strategy.stack.cross_entropy_fusion", enabled && has(components, "loss"), "compile.components");
  if (keys_.given("loss.num_chunks"))
    set("strategy.stack.loss_chunks", keys_.count("loss.num_chunks", 1, 1), "loss.num_chunks");
  if (const std::string norm = keys_.text("model.norm_type"); !compiled_ && norm.ends_with("_rmsnorm"))
    set("strategy.stack.norm_fusion", "true", "model.norm_type");
  read_optimizer();
  const bool async = keys_.flag("parallelism.enable_async_tensor_parallel", false);
  if (async && !compiled_)
    keys_.fail("parallelism.enable_async_tensor_parallel", " needs compile.enable with 'model' in its components");
  set_flag("strategy.stack.overlap_tensor", async && tp_ > 1, "parallelism.enable_async_tensor_parallel");
  set_flag("strategy.stack.deterministic", keys_.flag("debug.deterministic", false), "debug.deterministic");
  if (version_.graphs_by_default)
    set("strategy.stack.cuda_graphs", keys_.flag("training.disable_cuda_graphs", false) ? "none" : "all",
        "training.disable_cuda_graphs");
  read_attention();
}

/// Scaled dot-product attention takes the first of its kernels that can: cuDNN's since v0.2.0 (models/attention.py,
/// sdpa_backends with set_priority), FlashAttention 2 before, and with Blackwell cuDNN's since May 2025.
void Reader::read_attention() {
  const std::string key = "strategy.stack.attention", other = "--set " + key + "=";
  const bool flexible = flavor_->flexible || version_.flexible_by_default, old = !version_.old_key.empty();
  set(key, std::string(flexible || old ? "flash2" : "cudnn"));
  if (flexible)
    note("assumed: FlexAttention as fast as FlashAttention 2, over whole samples instead of the documents in them");
  else if (old)
    note(
        fmt::format("assumed: FlashAttention 2, as {} is a key of before v0.2.0, which takes cuDNN's first ({}cudnn, "
                    "also with Blackwell since May 2025)",
                    version_.old_key, other));
  else
    note(
        fmt::format("assumed: cuDNN's attention, the first that torchtitan tries since v0.2.0; FlashAttention 2, which "
                    "it took before, is {}flash2",
                    other));
}

/// Adam is one kernel, or one for each of its operations on many parameters (foreach) or on one (for-loop).
void Reader::read_optimizer() {
  const std::string name = "optimizer.implementation", old = "optimizer.fused";
  const std::string otherwise = keys_.flag(old, true) ? "fused" : "foreach";
  const std::string how = keys_.text(name, otherwise);
  set("strategy.stack.optimizer_fusion", keys_.translated(name, how, "fused=true foreach=false for-loop=false"),
      keys_.given(name) || !keys_.given(old) ? name : old);
  if (how == "for-loop")
    note("optimizer.implementation for-loop: as foreach here, though it launches a kernel for each parameter");
}

std::vector<std::string> Reader::converters() const {
  std::vector<std::string> names = keys_.words("model.converters");
  // In 2024 the kind of scaling, or nothing.
  const std::string old = "float8.enable_float8_linear";
  const import::Node* kind = keys_.find(old);
  const bool said = kind != nullptr && kind->quoted && (kind->text.empty() || kind->text == "dynamic");
  if (said ? !kind->text.empty() : keys_.flag(old, false)) names.push_back("float8");
  return names;
}

void Reader::read_precision() {
  const std::string because = keys_.given("model.converters") ? "model.converters" : "float8.enable_float8_linear";
  bool linear = false, grouped = false;
  std::string precision = "bf16";
  for (const std::string& one : converters()) {
    const std::string next =
        keys_.translated(because, one,
                         "float8=fp8 mx=mxfp8 quantize.linear.float8=fp8 quantize.linear.mx=mxfp8 "
                         "quantize.grouped_mm.float8=fp8 quantize.grouped_mm.mx=mxfp8 quantize.linear.nvfp4=nvfp4");
    (one.starts_with("quantize.grouped_mm") ? grouped : linear) = true;
    if (precision != "bf16" && precision != next) keys_.fail(because, ": layers of two precisions are not modelled");
    precision = next;
  }
  if (precision != "bf16" && (flavor_->sizes.has_experts() ? !linear || !grouped : !linear))
    keys_.fail(because,
               ": experts in another precision than the other layers are not modelled; known are both "
               "quantize.linear and quantize.grouped_mm, or none");
  const std::string recipe = keys_.text("quantize.linear.float8.recipe_name", "tensorwise");
  if (precision == "fp8" && recipe != "tensorwise")
    keys_.fail("quantize.linear.float8.recipe_name", fmt::format(" {}: one scale a row is not modelled", recipe));
  set("strategy.stack.precision", precision, because);
}

void Reader::read_experts() {
  if (!flavor_->sizes.has_experts()) return;
  set("strategy.ep", ep_, "parallelism.expert_parallel_degree");
  set("strategy.etp", etp_, "parallelism.expert_tensor_parallel_degree");
  set("strategy.expert_gemm", "grouped");
  const std::string backend = keys_.text("parallelism.expert_parallel_comm_backend", "standard");
  const std::string dispatcher = keys_.translated("parallelism.expert_parallel_comm_backend", backend,
                                                  "standard=all_to_all deepep=deepep hybridep=hybrid_ep");
  set("strategy.stack.dispatcher", ep_ > 1 ? dispatcher : "all_to_all", "parallelism.expert_parallel_comm_backend");
  if (!keys_.flag("debug.moe_force_load_balance", false)) note("assumed: tokens are spread evenly over the experts");
}

void Reader::read_recompute() {
  const std::string name = "activation_checkpoint.mode", mode = keys_.text(name, "selective");
  const std::string option = keys_.text("activation_checkpoint.selective_ac_option", "2");
  if (mode == "selective" && option != "op") return read_layer_recompute(option);
  set("strategy.recompute", mode == "selective" ? "per_op" : keys_.translated(name, mode, "none=none full=full"), name);
}

/// Every Nth layer, counted over the stages of a rank; here as many layers of each chunk.
void Reader::read_layer_recompute(const std::string& option) {
  const std::string name = "activation_checkpoint.selective_ac_option";
  const auto every = shell::integer_of(option);
  if (!every || *every < 0) keys_.fail(name, fmt::format(" '{}' must be op or a number of layers", option));
  const std::string because = keys_.given(name) ? name : "activation_checkpoint.mode";
  if (*every <= 1) return set("strategy.recompute", "full", because);
  const std::vector<std::int64_t> stages =
      stage_layers_.empty() ? std::vector<std::int64_t>{flavor_->sizes.layers} : stage_layers_;
  const std::int64_t recomputed = *std::max_element(stages.begin(), stages.end()) / *every;
  if (stages.size() > 1)
    note(fmt::format("assumed: {} layers of each stage are recomputed, every layer number {} of stages with {}",
                     recomputed, *every, fmt::join(stages, ", ")));
  set("strategy.recompute", std::string(recomputed == 0 ? "none" : "full"), because);
  if (recomputed > 0) set("strategy.recompute_layers", recomputed, because);
}

}  // namespace manyworlds::experiments::jobs::torchtitan
