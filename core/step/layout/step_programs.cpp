#include "core/step/layout/step_programs.hpp"

#include <algorithm>

#include "core/workload/build/build_program.hpp"

namespace manyworlds::core::step {

std::vector<workload::Program> build_programs(const Configuration& configuration,
                                              const std::vector<workload::RankClass>& classes) {
  if (configuration.programs) return configuration.programs->programs;
  const auto orders = workload::pipeline_orders(configuration.model, configuration.strategy, configuration.gpu);
  std::vector<workload::Program> programs;
  for (const workload::RankClass& one : classes)
    programs.push_back(
        workload::build_program(configuration.model, configuration.strategy, configuration.gpu_of(one), orders, one));
  return programs;
}

std::vector<workload::KernelUse> kernels_of(const Configuration& configuration, const workload::RankClass& one) {
  if (configuration.programs) return configuration.programs->kernels.at(static_cast<std::size_t>(one.stage));
  return workload::kernels_used(configuration.model, configuration.strategy, configuration.gpu_of(one), one);
}

SequencesByRole sequences_of(const workload::Program& program) {
  SequencesByRole by_role(workload::roles_of(program));
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const workload::CollectiveCall* call = program.ops[i].collective();
    if (call == nullptr) continue;
    OperationSequence& sequence = by_role[static_cast<std::size_t>(call->role)];
    const collective::Split& split = program.split_of(*call);
    auto known = std::find_if(sequence.distinct.begin(), sequence.distinct.end(), [&](const Operation& one) {
      return one.kind == call->kind && one.bytes == call->bytes && one.split == split;
    });
    if (known == sequence.distinct.end()) known = sequence.distinct.insert(known, {call->kind, call->bytes, split, 0});
    ++known->times;
    sequence.ops.push_back(i);
    sequence.operation.push_back(static_cast<std::uint32_t>(known - sequence.distinct.begin()));
  }
  return by_role;
}

ShapedOperations shaped(const Configuration& configuration, const GroupKind& kind,
                        const std::vector<Operation>& operations) {
  ShapedOperations result;
  for (const Operation& operation : operations) {
    const collective::Shape shape = shape_of(configuration, kind, operation.kind, operation.bytes, operation.split);
    const auto same = std::find(result.shapes.begin(), result.shapes.end(), shape);
    result.shape_of.push_back(static_cast<std::uint32_t>(same - result.shapes.begin()));
    if (same == result.shapes.end()) result.shapes.push_back(shape);
  }
  return result;
}

void write_kernel(sharing::KeyWriter& writer, const compute::Kernel& k) {
  writer.text(k.name).integer(static_cast<std::int64_t>(k.kernel_class)).integer(static_cast<std::int64_t>(k.dtype));
  for (const std::int64_t value : {k.m, k.n, k.k, k.batch, k.bytes, k.flops}) writer.integer(value);
  for (const std::int64_t value :
       {std::int64_t{k.accumulates}, std::int64_t{k.one_by_one}, k.attention.pairs, k.attention.value_width,
        k.attention.key_batch, k.attention.window, std::int64_t{k.attention.cut_by_mask}})
    writer.integer(value);
  writer.integer(k.expert_tokens.tokens > 0);
  if (k.expert_tokens.tokens > 0) {
    writer.integer(k.expert_tokens.tokens).integer(k.expert_tokens.max_tokens);
    for (const std::int64_t tiles : k.expert_tokens.tiles) writer.integer(tiles);
  }
}

bool are_synchronised(const Configuration& configuration) {
  return configuration.programs ? configuration.programs->is_synchronised
                                : !configuration.strategy.stack.post_validation;
}

}  // namespace manyworlds::core::step
