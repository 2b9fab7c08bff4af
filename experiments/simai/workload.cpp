#include "experiments/simai/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/simai/rank_groups.hpp"
#include "experiments/simai/step_builder.hpp"
#include "experiments/simai/workload_file.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::simai {
namespace {

using core::InputError;
using core::workload::StepPart;
using programs::Communication;
using programs::KernelWork;

constexpr std::size_t kMaxOperations = 4'000'000;

KernelWork kernel_of(std::int64_t ns, StepPart part) {
  KernelWork work;
  work.measured_us = static_cast<double>(ns) * 1e-3;
  work.part = part;
  return work;
}

/// Goes through the layers as SimAI does.
class Pass {
 public:
  Pass(const WorkloadFile& file, const RankOrder& order, programs::StreamPrograms& to, const std::string& name)
      : file_(file),
        names_(to.names),
        dimensions_(order, to.ranks),
        builder_(to.programs.emplace_back(), names_),
        program_(to.programs.back()),
        name_(name) {}

  void run() {
    if (file_.loop == Loop::micro) return run_micro();
    for (const Layer& layer : file_.layers) {
      compute(layer, layer.forward, "forward", StepPart::forward);
      if (file_.loop != Loop::data) wait_for(layer, layer.forward, "forward");
    }
    if (file_.loop == Loop::inference) return;
    for (std::size_t i = file_.layers.size(); i-- > 0;) backward(i);
    if (builder_.is_anything_beside())
      builder_.end("compute", "end of weight gradients", kernel_of(last_process_ns_, StepPart::kernels));
  }

  std::int64_t waits() const { return builder_.waits(); }
  std::int64_t without_partner() const { return without_partner_; }
  std::int64_t empty() const { return empty_; }

 private:
  void run_micro() {
    for (const Layer& layer : file_.layers) wait_for(layer, layer.weight_gradient, "communication");
  }

  void backward(std::size_t number) {
    const Layer& layer = file_.layers[number];
    if (file_.loop == Loop::data) {
      weight_gradients(layer);
      if (number > 0) compute(layer, layer.input_gradient, "input gradient", StepPart::backward);
      return;
    }
    if (contains(file_.checkpoint_initiates, number)) recompute(number);
    compute(layer, layer.input_gradient, "input gradient", StepPart::backward);
    std::optional<std::uint32_t> beside;
    if (file_.loop == Loop::transformer)
      wait_for(layer, layer.input_gradient, "input gradient");
    else if (number > 0)
      beside = run_beside(layer, layer.input_gradient, "input gradient", true);
    weight_gradients(layer);
    if (!beside) return;
    builder_.rejoin(*beside);
    process(layer);
  }

  void weight_gradients(const Layer& layer) {
    compute(layer, layer.weight_gradient, "weight gradient", StepPart::backward);
    if (file_.has_weight_communication && run_beside(layer, layer.weight_gradient, "weight gradient", false))
      last_process_ns_ = std::max(last_process_ns_, layer.process_ns);
  }

  /// Runs forward passes again, from the checkpoint up to the layer before `initiator`.
  void recompute(std::size_t initiator) {
    std::size_t from = initiator + 1;
    while (from > 0 && !contains(file_.checkpoints, from - 1)) --from;
    if (from == 0 || from - 1 == initiator)
      throw InputError(fmt::format("layer {} is one of checkpoint_initiates, and no layer before it is one of "
                                   "checkpoints: SimAI would run on without end",
                                   initiator),
                       name_, 1);
    for (std::size_t i = from - 1; i < initiator; ++i) {
      if (i > from - 1 && contains(file_.checkpoint_initiates, i))
        throw InputError(fmt::format("layer {} of checkpoint_initiates stands between layer {} and its checkpoint {}: "
                                     "SimAI would run on without end",
                                     i, initiator, from - 1),
                         name_, 1);
      const Layer& layer = file_.layers[i];
      compute(layer, layer.forward, "recomputed", StepPart::recompute);
      wait_for(layer, layer.forward, "recomputed");
    }
  }

  static bool contains(const std::vector<std::uint32_t>& layers, std::size_t layer) {
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
  }

  void compute(const Layer& layer, const LayerPass& pass, const char* what, StepPart part) {
    if (program_.ops.size() > kMaxOperations)
      throw InputError(fmt::format("has more than {} operations of a rank", kMaxOperations), name_, layer.line);
    if (pass.compute_ns > 0)
      builder_.next("compute", fmt::format("{} {}", layer.id, what), kernel_of(pass.compute_ns, part));
  }

  void wait_for(const Layer& layer, const LayerPass& pass, const char* what) {
    const std::optional<Communication> work = communication_of(pass, what, true);
    if (!work) return;
    builder_.next(stream_name(group_of(pass, what), true), name_of(layer, pass, what), *work);
    process(layer);
  }

  /// `is_rejoined`: something waits for it before the end.
  std::optional<std::uint32_t> run_beside(const Layer& layer, const LayerPass& pass, const char* what,
                                          bool is_rejoined) {
    const std::optional<Communication> work = communication_of(pass, what, is_rejoined);
    if (!work) return std::nullopt;
    return builder_.beside(stream_name(group_of(pass, what), is_rejoined), name_of(layer, pass, what), *work);
  }

  void process(const Layer& layer) {
    if (layer.process_ns > 0) builder_.next("compute", "process", kernel_of(layer.process_ns, StepPart::kernels));
  }

  static std::string name_of(const Layer& layer, const LayerPass& pass, const char* what) {
    return fmt::format("{} {} {}", layer.id, what, core::collective::name_of(*pass.kind));
  }

  GroupKind group_of(const LayerPass& pass, const char* what) const {
    if (pass.suffix == GroupSuffix::expert) return GroupKind::expert;
    if (pass.suffix == GroupSuffix::expert_data) return GroupKind::expert_data;
    if (!file_.is_hybrid) return GroupKind::all;
    return std::string_view(what) == "weight gradient" ? GroupKind::data : GroupKind::tensor;
  }

  std::optional<Communication> communication_of(const LayerPass& pass, const char* what, bool is_awaited) {
    if (!pass.kind) return std::nullopt;
    if (pass.bytes == 0) {
      ++empty_;
      return std::nullopt;
    }
    const std::optional<std::uint32_t> dimension = dimensions_.of(group_of(pass, what), is_awaited);
    if (!dimension) {
      ++without_partner_;
      return std::nullopt;
    }
    Communication work;
    work.dimension = *dimension;
    work.kind = *pass.kind;
    work.bytes = pass.bytes;
    return work;
  }

  const WorkloadFile& file_;
  programs::Names names_;
  Dimensions dimensions_;
  StepBuilder builder_;
  programs::RankProgram& program_;
  const std::string& name_;
  std::int64_t last_process_ns_ = 0, without_partner_ = 0, empty_ = 0;
};

RankOrder order_of(const WorkloadFile& file, const RunOptions& options, const std::string& name) {
  RankOrder order;
  order.gpus = options.gpus.value_or(file.gpus);
  if (order.gpus == 0)
    throw InputError("does not say how many GPUs it is for ('all_gpus: N'); give --ranks N", name, 1);
  order.tp = !file.is_hybrid || file.tp == 0 ? order.gpus / file.pp : file.tp;
  order.tp = std::max(order.tp, 1u);
  order.ep = file.ep;
  order.pp = file.pp;
  try {
    order.check();
  } catch (const InputError& error) {
    throw error.at(name, 1);
  }
  return order;
}

/// Says what SimAI's report adds for a pipeline, whose stages it does not simulate (Layer::report).
void tell_pipeline(const WorkloadFile& file, programs::Imported& to) {
  if (file.pp == 1) return;
  to.programs.notes.push_back(fmt::format(
      "the {} stages have the program of one, as in SimAI: there are no transfers between them, and no bubble",
      file.pp));
  if (file.micro_batches == 0 || file.vpp == 0)
    return to.account.push_back(
        fmt::format("'{}: 0' of the header: what SimAI's report would add for the pipeline is "
                    "not said",
                    file.vpp == 0 ? "vpp" : "ga"));
  to.account.push_back(fmt::format(
      "SimAI's report would add (pp - 1) / (ga vpp) = {:.1f} % of the step without its embedding layers as bubble, and "
      "{} transfers of {} bytes",
      100.0 * (file.pp - 1) / (static_cast<double>(file.micro_batches) * file.vpp),
      2 * std::uint64_t{file.vpp} * file.micro_batches, file.pipeline_bytes));
}

}  // namespace

GroupSizes parse_group_sizes(std::string_view text, const std::string& option) {
  GroupSizes sizes;
  const std::array<std::pair<std::string_view, std::uint32_t*>, 3> names{
      {{"tp=", &sizes.tp}, {"ep=", &sizes.ep}, {"pp=", &sizes.pp}}};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const auto known =
        std::find_if(names.begin(), names.end(), [&](const auto& name) { return one.starts_with(name.first); });
    std::uint32_t value = 0;
    const auto read = [&](std::string_view digits) {
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return error == std::errc() && end == digits.data() + digits.size() && value > 0 && value <= programs::kMaxRanks;
    };
    if (known == names.end() || !read(one.substr(known->first.size())) || *known->second != 0)
      throw InputError(
          fmt::format("must be sizes of groups, as in tp=2,ep=8,pp=4, each once and from 1 to {}, not '{}'",
                      programs::kMaxRanks, text.substr(0, 80)),
          option);
    *known->second = value;
  }
  return sizes;
}

programs::Imported parse_workload(std::string_view text, const std::string& name, const RunOptions& options) {
  const WorkloadFile file = parse_workload_file(text, name);
  const RankOrder order = order_of(file, options, name);
  programs::Imported result;
  programs::StreamPrograms& to = result.programs;
  to.name = name.substr(name.rfind('/') + 1);
  to.origin = fmt::format("SimAI workload {}", name);
  to.slowed = core::workload::SlowedKernels::none;
  to.ranks.program_of_rank.assign(order.gpus, 0);
  Pass pass(file, order, to, name);
  to.programs.back().name = "all";
  pass.run();
  if (to.programs.back().ops.empty()) throw InputError("has no operation that takes time", name);
  result.dependencies.exact = pass.waits();
  result.account = file.account;
  result.account.push_back(fmt::format("{}: {} layers; tp {}, ep {}, pp {}, dp {} on {} GPUs", file.policy,
                                       file.layers.size(), order.tp, order.ep, order.pp, order.dp(), order.gpus));
  to.notes.push_back("times are nanoseconds, as in SimAI; kernels are not slowed by collectives beside them");
  if (file.loop == Loop::micro)
    to.notes.push_back("the lines of MICRO run one after the other; SimAI itself runs the first alone");
  if (pass.without_partner() > 0)
    result.account.push_back(
        fmt::format("{} communications are left out, as their groups have one rank", pass.without_partner()));
  if (pass.empty() > 0)
    result.account.push_back(fmt::format("{} communications of 0 bytes are left out", pass.empty()));
  tell_pipeline(file, result);
  return result;
}

programs::Imported read_workload(const std::string& path, const RunOptions& options) {
  return parse_workload(import::read_table_text(path), path, options);
}

}  // namespace manyworlds::experiments::simai
