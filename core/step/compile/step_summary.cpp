#include "core/step/compile/step_summary.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/step/layout/interference.hpp"
#include "core/step/layout/keys.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/distributions/documents.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/distillation.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/group_limits.hpp"

namespace manyworlds::core::step {
namespace {

/// The operations of a kind of groups with one shape.
struct ShapedOp {
  std::uint64_t times = 0;
  collective::Shape shape;
  std::size_t transfers = 0;
  std::uint32_t pairs = 0;
  std::uint32_t number = 0;  // number of the shape
};
struct KindOps {
  std::vector<ShapedOp> shapes;
  std::vector<std::uint32_t> shape_of;  // by operation: index in `shapes`
};
using OpsByKind = std::vector<KindOps>;

OpsByKind shaped_ops(const Configuration& configuration, const StepOperations& operations, RankLayout& layout,
                     DagCache& dags) {
  OpsByKind all;
  std::map<collective::Shape, std::uint32_t> numbers;
  for (const GroupKind& kind : layout.kinds()) {
    KindOps& result = all.emplace_back();
    ShapedOperations by_shape = shaped(configuration, kind, operations.of(kind));
    for (const collective::Shape& shape : by_shape.shapes) {
      const auto dag = dags.canonical(shape);
      const auto number = numbers.try_emplace(shape, static_cast<std::uint32_t>(numbers.size())).first->second;
      result.shapes.push_back({0, shape, dag->transfers.size(), layout.connectivity_number(*dag), number});
    }
    for (std::size_t i = 0; i < by_shape.shape_of.size(); ++i)
      result.shapes[by_shape.shape_of[i]].times += operations.of(kind)[i].times;
    result.shape_of = std::move(by_shape.shape_of);
  }
  return all;
}

/// Writes inputs that are not options: the expert loads of a routing file, and a pipeline schedule from a file.
void write_external_inputs(sharing::KeyWriter& writer, const Configuration& configuration) {
  if (configuration.model.routing) writer.text("routing").key(configuration.model.routing->key);
  if (configuration.model.documents) writer.text("documents").key(configuration.model.documents->key);
  if (configuration.strategy.written) writer.text("schedule").key(workload::key_of(*configuration.strategy.written));
}

/// Returns the options of a model. Groups of experts are none of them where the router does not limit these, so that
/// such steps have the keys that they had before there were groups.
OptionSet options_of(const workload::Model& model) {
  OptionSet values = workload::model_options().read(model);
  if (!workload::limits_groups(model)) values.erase("expert_groups"), values.erase("groups_per_token");
  return values;
}

/// Writes the model that teaches, if there is one.
void write_teacher(sharing::KeyWriter& writer, const workload::Model& model) {
  if (!model.teacher) return;
  writer.text("teacher");
  write_options(writer, options_of(*model.teacher));
  write_options(writer, workload::teacher_options().read(workload::teacher_of(model)));
}

/// Writes the measured times of kernels, in program order. Rows of the table that match no kernel do not affect the
/// key.
void write_measured(sharing::KeyWriter& writer, const Configuration& configuration) {
  if (!configuration.gpu.measured) return;
  sharing::KeyWriter times("measured");
  std::int64_t position = 0, measured = 0;
  const auto write = [&](const compute::KernelCost& kernel_cost) {
    ++position;
    if (kernel_cost.level == compute::CostLevel::model) return;
    ++measured;
    times.integer(position).integer(static_cast<std::int64_t>(kernel_cost.level)).integer(kernel_cost.ps);
  };
  for (const workload::RankClass& one : workload::rank_classes(configuration.model, configuration.strategy)) {
    for (const workload::PartWork& part :
         workload::stage_work(configuration.model, configuration.strategy, configuration.gpu, one).parts) {
      for (const workload::PhaseList* pass : {&part.forward, &part.backward})
        for (const workload::Phase& phase : *pass)
          for (const workload::WorkItem& work : phase.ops)
            if (const workload::KernelWork* kernel = work.kernel()) write(kernel->cost);
      for (const workload::WeightFactors& weight : part.factors)
        for (const workload::WorkItem& work : weight.gradient) write(work.kernel()->cost);
    }
    for (const compute::Kernel& kernel : workload::optimizer_kernels(
             configuration.strategy,
             workload::trained_stage_parameters(configuration.model, configuration.strategy, one.stage)))
      write(compute::kernel_cost(kernel, configuration.gpu));
  }
  if (measured > 0) writer.key(times.finish());
}

/// Writes the GPUs of the other machine kinds, and the machine kind of every rank.
void write_machines(sharing::KeyWriter& writer, const Configuration& configuration) {
  if (!configuration.is_mixed()) return;
  writer.text("machines")
      .integer(static_cast<std::int64_t>(configuration.other_gpus.size()))
      .real(configuration.gpu.speed_factor);
  for (const compute::Gpu& gpu : configuration.other_gpus) {
    write_options(writer, compute::gpu_options().read(gpu));
    writer.real(gpu.speed_factor);
  }
  const ParallelConfig parallel = parallel_config_of(configuration);
  for (const RankId rank : IdRange<RankId>(parallel.ranks()))
    writer.integer(parallel.kind_of_gpu.at(gpu_of(parallel, rank).value()));
}

/// Returns the options of a strategy. How gradients are exchanged is none of them where replicas sum them, so that such
/// steps have the keys that they had before there was a choice.
OptionSet strategy_values(const workload::Strategy& strategy) {
  OptionSet values = workload::strategy_options().read(strategy);
  if (strategy.gradient_exchange == workload::GradientExchange::sums)
    values.erase("gradient_exchange"), values.erase("factor_weights");
  return values;
}

/// Returns the options of a model but its teacher. What is trained is none of them where all weights are, nor what is
/// generated where nothing is, for the same reason.
OptionSet model_values(const workload::Model& model) {
  OptionSet values = options_of(model);
  values.erase("teacher");
  if (!workload::is_frozen(model)) values.erase("frozen"), values.erase("lora_rank"), values.erase("lora_weights");
  if (!workload::is_inference(model)) values.erase("inference"), values.erase("cached_tokens");
  return values;
}

/// Writes what the operations of every rank depend on, but for dp.
void write_configuration(sharing::KeyWriter& writer, const Configuration& configuration) {
  if (configuration.programs) {
    writer.text("programs").key(configuration.programs->key);
    write_options(writer, compute::gpu_options().read(configuration.gpu));
    write_machines(writer, configuration);
    return;
  }
  write_options(writer, model_values(configuration.model));
  write_teacher(writer, configuration.model);
  write_options(writer, strategy_values(configuration.strategy));
  write_options(writer, workload::stack_options().read(configuration.strategy.stack));
  write_options(writer, compute::gpu_options().read(configuration.gpu));
  write_external_inputs(writer, configuration);
  write_measured(writer, configuration);
  write_machines(writer, configuration);
}

/// Writes what the error of fluids is measured with.
void write_fluid_sampling(sharing::KeyWriter& writer, const Configuration& configuration) {
  network::Transport packets = configuration.transport;
  packets.fidelity = network::Fidelity::packet;
  write_transport(writer, packets);
  writer.integer(configuration.fluid.samples).integer(configuration.fluid.link_hops);
}

/// Writes where ranks stand and which communicators they form.
void write_parallel(sharing::KeyWriter& writer, const ParallelConfig& parallel) {
  const auto& [tp, cp, dp, pp, ep, etp, gpus_per_node, tied_embeddings, has_experts, context_ring, context_group,
               ring_pipeline, depends_on_network, expert_ranks_differ, stage_placement, placement, zero_groups,
               kind_of_gpu, given] = parallel;  // all of them; those that are given are in the programs' key
  for (const std::int64_t size : {tp, cp, dp, pp, ep, etp, gpus_per_node, zero_groups}) writer.integer(size);
  for (const bool is : {tied_embeddings, has_experts, context_ring, context_group, ring_pipeline, depends_on_network,
                        expert_ranks_differ, given != nullptr})
    writer.integer(is);
  writer.integer(static_cast<std::int64_t>(stage_placement)).integer(static_cast<std::int64_t>(placement));
  writer.integer(std::ssize(kind_of_gpu));
  for (const std::uint32_t kind : kind_of_gpu) writer.integer(kind);
}

sharing::Key step_key(const Configuration& configuration, const StepOperations& step_operations,
                      const OpsByKind& by_kind, RankLayout& layout) {
  sharing::KeyWriter writer("step");
  writer.key(step_operations.key());
  write_parallel(writer, parallel_config_of(configuration));
  for (const workload::RankClass& rank_class : layout.classes()) {
    const stream::Interference lost = interference_of(configuration, configuration.gpu_of(rank_class));
    for (const std::int64_t value : {lost.slowdown_ppm, lost.units, lost.units_to_move, lost.units_to_reduce})
      writer.integer(value);
  }
  writer.integer(static_cast<std::int64_t>(configuration.composition));
  writer.integer(configuration.limit.link_hops).integer(configuration.limit.events);
  if (configuration.tick_ns > 0) writer.text("tick").integer(configuration.tick_ns);
  write_transport(writer, configuration.transport);
  if (configuration.transport.fidelity == network::Fidelity::fluid) write_fluid_sampling(writer, configuration);
  std::vector<std::vector<std::uint32_t>> pairs_of_kind;
  for (const KindOps& operations : by_kind) {
    std::vector<std::uint32_t>& pairs = pairs_of_kind.emplace_back();
    writer.integer(std::ssize(operations.shapes)).integer(std::ssize(operations.shape_of));
    for (const ShapedOp& operation : operations.shapes) {
      write_shape(writer, operation.shape);
      if (std::find(pairs.begin(), pairs.end(), operation.pairs) == pairs.end()) pairs.push_back(operation.pairs);
    }
    for (const std::uint32_t shape : operations.shape_of) writer.integer(shape);
  }
  // New routes depend on the whole fabric, on where ranks are placed, and on how paths are chosen.
  if (configuration.has_failures()) {
    write_failures(writer, configuration.failures);
    const network::PathChoice choice = network::path_choice_of(configuration.transport);
    writer.key(layout.fabric_key()).integer(static_cast<std::int64_t>(choice.routing));
    writer.integer(static_cast<std::int64_t>(choice.seed)).integer(static_cast<std::int64_t>(choice.seeds));
    writer.integer(static_cast<std::int64_t>(choice.weights));
    for (const RankId rank : layout.rank_ids()) writer.integer(layout.gpu_of(rank).value());
  }
  return writer.key(layout.full_route_signature(pairs_of_kind)).finish();
}

/// Writes all that a program does, but for what its operations are called.
void write_program(sharing::KeyWriter& writer, const workload::Program& program) {
  writer.integer(std::ssize(program.ops));
  for (const workload::Op& op : program.ops) {
    writer.integer(static_cast<std::int64_t>(op.stream)).integer(op.waits_end - op.waits_begin);
    for (std::uint32_t wait = op.waits_begin; wait < op.waits_end; ++wait) writer.integer(program.waits[wait]);
    if (const workload::KernelOp* kernel = op.kernel()) {
      writer.integer(-1 - static_cast<std::int64_t>(kernel->category)).integer(kernel->duration_ps);
      continue;
    }
    const workload::CollectiveCall& call = *op.collective();
    writer.integer(static_cast<std::int64_t>(call.role)).integer(static_cast<std::int64_t>(call.kind));
    writer.integer(call.split).integer(call.bytes);
  }
  writer.integer(std::ssize(program.splits));
  for (const collective::Split& split : program.splits) {
    writer.integer(split.by_source).integer(std::ssize(split.bytes));
    for (const std::int64_t bytes : split.bytes) writer.integer(bytes);
  }
  writer.integer(std::ssize(program.exposed_dimensions));
  for (const workload::StepPart part : program.exposed_dimensions) writer.integer(static_cast<std::int64_t>(part));
}

/// Writes the kernels of a class of ranks, which results list.
void write_kernels(sharing::KeyWriter& writer, const Configuration& configuration,
                   const workload::RankClass& rank_class) {
  const compute::Gpu& gpu = configuration.gpu_of(rank_class);
  write_options(writer, compute::gpu_options().read(gpu));
  writer.real(gpu.speed_factor);
  const std::vector<workload::KernelUse> kernels = kernels_of(configuration, rank_class);
  writer.integer(std::ssize(kernels));
  for (const workload::KernelUse& use : kernels) {
    write_kernel(writer, use.kernel);
    writer.integer(use.cost_ps).integer(static_cast<std::int64_t>(use.level));
    writer.integer(static_cast<std::int64_t>(use.basis)).integer(use.times);
  }
}

}  // namespace

void write_failures(sharing::KeyWriter& writer, const LinkFailures& failures) {
  if (failures.cables.empty()) return;
  writer.text("failures").integer(failures.reconvergence_ps).integer(failures.retransmit_ps);
  for (const LinkFailures::Cable& cable : failures.cables) writer.integer(cable.link).integer(cable.at);
}

StepOperations::StepOperations(const Configuration& configuration) {
  std::vector<workload::RankClass> classes;
  for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration))) classes.push_back(rank_class);
  sharing::KeyWriter key("programs of a step");
  if (configuration.programs) key.key(configuration.programs->key);
  key.integer(are_synchronised(configuration));
  for (const workload::Program& program : build_programs(configuration, classes)) {
    in_programs_.push_back(program.ops.size());
    auto& by_role = by_class_.emplace_back();
    for (OperationSequence& sequence : sequences_of(program)) by_role.push_back(std::move(sequence.distinct));
    write_program(key, program);
  }
  for (const workload::RankClass& rank_class : classes) write_kernels(key, configuration, rank_class);
  key_ = key.finish();
}

sharing::Key operations_key(const Configuration& configuration) {
  sharing::KeyWriter writer("operations");
  write_configuration(writer, configuration);
  return writer.integer(configuration.strategy.dp).finish();
}

StepSummary summary_of(const Configuration& configuration, const StepOperations& operations, RankLayout& layout,
                       DagCache& dags) {
  const OpsByKind by_kind = shaped_ops(configuration, operations, layout, dags);
  StepSummary result;
  result.step = step_key(configuration, operations, by_kind, layout);
  for (std::uint32_t number = 0; number < layout.classes().size(); ++number)
    result.cost += static_cast<double>(operations.in_program(number) * layout.class_size(number));
  const sharing::Key transport = transport_key(configuration.transport);
  std::vector<std::vector<bool>> seen;  // by numbers of shape and route signature
  for (const GroupId group : layout.groups().ids())
    for (const ShapedOp& operation : by_kind[layout.groups()[group].kind].shapes) {
      const Connections& connections = *layout.connections_of(group, operation.pairs);
      result.instances += operation.times;
      if (layout.groups()[group].role == workload::Role::data)
        result.cost += static_cast<double>(operation.times * operation.transfers);
      if (seen.size() <= operation.number)
        seen.resize(operation.number + 1, std::vector<bool>(layout.signature_count()));
      if (!seen[operation.number][connections.signature_number]) {
        seen[operation.number][connections.signature_number] = true;
        result.collectives.push_back({collective_key(operation.shape, connections.route_signature, transport),
                                      operation.shape, group, operation.transfers});
      }
    }
  return result;
}

}  // namespace manyworlds::core::step
