// The layout's part of Megatron-LM's arguments: ranks, batch, stages, recomputation, sharding.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/workload/model/modules.hpp"
#include "experiments/import/pipeline_layout.hpp"
#include "experiments/megatron/reader.hpp"
#include "experiments/shell/arithmetic.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::int64_t kMaxRanks = 1 << 20;

/// Returns the batch size of the last step of a schedule such as "0:384 200B:768".
std::optional<std::int64_t> last_batch(const std::vector<std::string>& steps) {
  if (steps.empty()) return std::nullopt;
  const std::string& last = steps.back();
  const std::size_t colon = last.rfind(':');
  return colon == std::string::npos ? std::nullopt : shell::integer_of(last.substr(colon + 1));
}

}  // namespace

/// Sizes of groups, and the number of GPUs that the file or the user tells.
void MegatronReader::read_gpus() {
  const std::string tensor = given("tensor-model-parallel-size") ? "tensor-model-parallel-size" : "model-parallel-size";
  tp_ = count(tensor, 1), pp_ = count("pipeline-model-parallel-size", 1), cp_ = count("context-parallel-size", 1);
  for (const auto& [name, size] : {std::pair(tensor, tp_), std::pair(std::string("pipeline-model-parallel-size"), pp_),
                                   std::pair(std::string("context-parallel-size"), cp_)})
    if (size < 1 || size > kMaxRanks) fail(name, " must be 1 at least");
  set("strategy.tp", tp_, tensor);
  set("strategy.pp", pp_, "pipeline-model-parallel-size");
  const std::int64_t told = arguments_.gpus > 0 ? arguments_.gpus : arguments_.nodes * arguments_.gpus_per_node;
  job_.gpus = options_.gpus > 0 ? options_.gpus : told;
  job_.unknown_size = arguments_.unknown_size;
  job_.is_batch_job = arguments_.is_batch_job;
  if (options_.gpus > 0 && told > 0 && told != options_.gpus)
    note(fmt::format("the file starts {} GPUs; here it is {}", told, options_.gpus));
  if (job_.gpus > kMaxRanks) job_.gpus = 0;
  const std::int64_t replica = tp_ * pp_ * cp_;
  if (job_.gpus > 0 && job_.gpus % replica != 0)
    fail_at(first_of({tensor, "pipeline-model-parallel-size", "context-parallel-size"}) == nullptr
                ? nowhere_
                : first_of({"pipeline-model-parallel-size", tensor, "context-parallel-size"})->place,
            fmt::format("{} GPUs are no multiple of tp {} x pp {} x cp {}; give --gpus N", job_.gpus, tp_, pp_, cp_));
}

void MegatronReader::read_layout() {
  set("strategy.sequence_parallel", given("sequence-parallel") && tp_ > 1 ? "true" : "false", "sequence-parallel");
  read_batch();
  read_stages();
  read_recompute();
  read_offload();
  read_sharding();
}

void MegatronReader::read_batch() {
  if (given("global-batch-size")) {
    if (given("step-batch-size-schedule"))
      note("the batch of --global-batch-size; --step-batch-size-schedule tells how it grows to it");
    return set("strategy.global_batch", count("global-batch-size", 0), "global-batch-size");
  }
  if (const auto last = last_batch(words("step-batch-size-schedule"))) {
    note(fmt::format("assumed: the last batch of the schedule, {}", *last));
    return set("strategy.global_batch", *last, "step-batch-size-schedule");
  }
  if (job_.gpus == 0) return;
  // arguments.py: micro_batch_size x data_parallel_size.
  set("strategy.global_batch", count("micro-batch-size", 1) * (job_.gpus / (tp_ * pp_ * cp_)), "micro-batch-size");
}

void MegatronReader::set_stages(std::int64_t chunks, const std::string& because) {
  set("strategy.virtual_stages", chunks, because);
  set("strategy.schedule", chunks > 1 ? "interleaved" : "1f1b", because);
  const char* groups = "microbatch-group-size-per-virtual-pipeline-stage";
  if (chunks > 1 && given(groups) && count(groups, pp_) != pp_)
    fail(groups, " other than the pipeline size is not modelled");
}

void MegatronReader::read_stages() {
  if (read_stage_layout()) return;
  const char* by_layers = "num-layers-per-virtual-pipeline-stage";
  const char* by_number = "num-virtual-stages-per-pipeline-rank";
  const bool embedding = given("account-for-embedding-in-pipeline-split");
  const bool loss = given("account-for-loss-in-pipeline-split");
  const std::int64_t counted = layers_ + (embedding ? 1 : 0) + (loss ? 1 : 0);
  std::int64_t chunks = std::max<std::int64_t>(count(by_number, 1), 1);
  if (const std::int64_t layers = count(by_layers, 0); layers > 0) {
    if (counted % (pp_ * layers) != 0)
      fail(by_layers, fmt::format(" {}: {} layers do not divide over {} stages of it", layers, counted, pp_));
    chunks = counted / pp_ / layers;
  }
  if (pp_ == 1) chunks = 1;
  set_stages(chunks, given(by_layers) ? by_layers : by_number);
  if (given("decoder-first-pipeline-num-layers") || given("decoder-last-pipeline-num-layers"))
    return read_uneven_stages(chunks);
  if (embedding && loss) return set("strategy.split", "light_ends", "account-for-loss-in-pipeline-split");
  if (!embedding && !loss) return set("strategy.split", "even");
  const char* name = embedding ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split";
  if (counted % (pp_ * chunks) != 0)
    fail(name, fmt::format(": {} layers do not divide over {} stages", counted, pp_ * chunks));
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pp_ * chunks), counted / (pp_ * chunks));
  --(embedding ? stages.front() : stages.back());
  set("strategy.stage_layers", fmt::format("[{}]", fmt::join(stages, ", ")), name);
}

/// Distributes the layers that the first and the last stage do not have evenly over the others, and those of a rank
/// evenly over its chunks.
void MegatronReader::read_uneven_stages(std::int64_t chunks) {
  const char *first = "decoder-first-pipeline-num-layers", *last = "decoder-last-pipeline-num-layers";
  const std::string name = given(first) ? first : last;
  const std::int64_t ends = count(first, 0) + count(last, 0);
  const std::int64_t others = pp_ - (given(first) ? 1 : 0) - (given(last) ? 1 : 0);
  if (others < 0 || ends > layers_ || (others > 0 ? (layers_ - ends) % others != 0 : layers_ != ends))
    fail(name, ": the other layers do not divide over the other stages");
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(pp_), others > 0 ? (layers_ - ends) / others : 0);
  if (given(first)) ranks.front() = count(first, 0);
  if (given(last)) ranks.back() = count(last, 0);
  std::vector<std::int64_t> stages;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (const std::int64_t layers : ranks) {
      if (layers % chunks != 0) fail(name, fmt::format(": {} layers do not divide over {} chunks", layers, chunks));
      stages.push_back(layers / chunks);
    }
  set("strategy.stage_layers", fmt::format("[{}]", fmt::join(stages, ", ")), name);
}

bool MegatronReader::read_stage_layout() {
  const char* name = "pipeline-model-parallel-layout";
  if (!given(name)) return false;
  const auto layout = import::expanded_layout(text(name));
  if (!layout) fail(name, fmt::format(" {} is not understood", text(name)));
  if (const std::int64_t mtp = count("mtp-num-layers", 0); !import::has_mtp_before_loss(*layout, mtp))
    fail(name, fmt::format(" {}: layers for multi-token prediction are modelled in the stage of L, before it, as many "
                           "as --mtp-num-layers, {}",
                           text(name), mtp));
  const std::vector<std::int64_t> stages = import::layers_of_stages(*layout);
  const auto sections = static_cast<std::int64_t>(stages.size());
  if (sections % pp_ != 0) fail(name, fmt::format(" has {} stages, which are no multiple of pp {}", sections, pp_));
  set_stages(sections / pp_, name);
  set("strategy.stage_layers", fmt::format("[{}]", fmt::join(stages, ", ")), name);
  return true;
}

void MegatronReader::read_recompute() {
  const bool old = given("checkpoint-activations") || given("activations-checkpoint-method");
  const std::string granularity =
      old ? "full" : text("recompute-granularity", given("recompute-activations") ? "selective" : "");
  const std::string because =
      old ? (given("checkpoint-activations") ? "checkpoint-activations" : "activations-checkpoint-method")
          : (given("recompute-granularity") ? "recompute-granularity" : "recompute-activations");
  if (granularity == "selective") return read_recompute_modules();
  if (granularity != "full" && !granularity.empty()) fail(because, fmt::format(" {} is not modelled", granularity));
  const std::string method = text(old ? "activations-checkpoint-method" : "recompute-method", "uniform");
  const std::string number = old ? "activations-checkpoint-num-layers" : "recompute-num-layers";
  const std::int64_t layers = count(number, 1);
  const bool none = granularity.empty() || (method == "block" && layers == 0);  // the first 0 layers of each stage
  set("strategy.recompute", none ? "none" : "full", none && !granularity.empty() ? number : because);
  if (none) return;
  if (method == "block") return set("strategy.recompute_layers", layers, number);
  if (method != "uniform") fail(old ? "activations-checkpoint-method" : "recompute-method", " is uniform or block");
  if (layers != 1 || count("checkpoint-num-layers", 1) != 1)
    fail(layers != 1 ? number : "checkpoint-num-layers", ": only single layers are recomputed uniformly here");
}

/// Returns the modules that an argument lists.
std::vector<std::string> MegatronReader::modules_in(const char* name, const std::vector<std::string>& known) const {
  std::vector<std::string> modules = words(name);
  for (const std::string& module : modules)
    if (std::find(known.begin(), known.end(), module) == known.end())
      fail(name, fmt::format(" {} is not modelled; known are {}", module, fmt::join(known, ", ")));
  return modules;
}

void MegatronReader::read_recompute_modules() {
  const std::vector<std::string> modules = modules_in("recompute-modules", core::workload::recompute_module_names());
  const bool core_attention = modules.empty() || (modules.size() == 1 && modules[0] == "core_attn");
  set("strategy.recompute", core_attention ? "selective" : "none", "recompute-granularity");
  if (!core_attention)
    set("strategy.recompute_modules", fmt::format("[{}]", fmt::join(modules, ", ")), "recompute-modules");
}

void MegatronReader::read_offload() {
  if (!given("fine-grained-activation-offloading")) return;
  const std::vector<std::string> modules = modules_in("offload-modules", core::workload::offload_module_names());
  if (!modules.empty())
    set("strategy.offload_modules", fmt::format("[{}]", fmt::join(modules, ", ")), "offload-modules");
}

void MegatronReader::read_sharding() {
  const std::int64_t replicas = job_.gpus > 0 ? job_.gpus / (tp_ * pp_) : 2;
  std::string because = "use-distributed-optimizer";
  zero_ = given(because) ? 1 : 0;
  if (given("use-megatron-fsdp")) {
    because = given("data-parallel-sharding-strategy") ? "data-parallel-sharding-strategy" : "use-megatron-fsdp";
    const std::string strategy = text("data-parallel-sharding-strategy", "no_shard");
    const std::string stage = translated("no_shard=0 optim=1 optim_grads=2 optim_grads_params=3", strategy);
    if (stage.empty()) fail(because, fmt::format(" {} is not modelled", strategy));
    zero_ = stage[0] - '0';
  }
  if (given("use-torch-fsdp2")) zero_ = 3, because = "use-torch-fsdp2";
  if (replicas == 1) zero_ = 0;
  set("strategy.zero", zero_, because);
  const std::int64_t instances = count("num-distributed-optimizer-instances", 1);
  if (zero_ == 0 || instances <= 1) return;
  if (job_.gpus == 0 || replicas % instances != 0)
    fail("num-distributed-optimizer-instances", " needs --gpus N, whose replicas it divides");
  set("strategy.zero_group", replicas / instances, "num-distributed-optimizer-instances");
}

}  // namespace manyworlds::experiments::jobs
