#include "core/step/layout/drawn_documents.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/compute/attention_tiles.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/distributions/documents.hpp"

namespace manyworlds::core::step {
namespace {

using workload::Documents;
using workload::PassKind;
using workload::PipelinePass;
using workload::StageWork;

/// What attention to documents takes in each pass of a class.
std::map<std::pair<PassKind, std::int32_t>, Time> attention_times(const StageWork& work) {
  std::map<std::pair<PassKind, std::int32_t>, Time> times;
  for (const PassKind kind :
       {PassKind::forward, PassKind::backward, PassKind::input_gradient, PassKind::weight_gradient})
    for (std::size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
      Time& sum = times[{kind, static_cast<std::int32_t>(chunk)}];
      for (const workload::ModelPart part : work.chunks[chunk])
        for (const workload::Phase& phase : work.of(part).pass(kind))
          for (const workload::WorkItem& item : phase.ops)
            if (const workload::KernelWork* kernel = item.kernel())
              if (kernel->shape.name == "attention" && compute::is_packed(kernel->shape)) sum += kernel->cost.ps;
    }
  return times;
}

std::shared_ptr<const Documents> only(const Documents& all, const std::vector<std::size_t>& samples) {
  auto result = std::make_shared<Documents>();
  result->sequence = all.sequence;
  std::map<std::int64_t, std::int64_t> times;
  for (const std::size_t sample : samples) {
    result->samples.push_back(all.samples[sample]);
    for (const std::int64_t length : all.samples[sample]) ++times[length];
  }
  result->lengths.assign(times.begin(), times.end());
  return result;
}

/// Calls `visit` with the passes of a program and the durations of their kernels.
template <class Visitor>
void for_each_pass_kernel(workload::Program& program, Visitor&& visit) {
  for (workload::Op& op : program.ops) {
    auto* kernel = std::get_if<workload::KernelOp>(&op.action);
    const PipelinePass* pass = program.pass_of(op);
    if (kernel != nullptr && pass != nullptr && op.stream == workload::Stream::compute)
      visit(*pass, kernel->duration_ps);
  }
}

}  // namespace

bool can_draw_documents(const Configuration& configuration, const workload::GivenPrograms& balanced) {
  const workload::Strategy& strategy = configuration.strategy;
  if (!configuration.model.documents || configuration.programs || configuration.is_mixed()) return false;
  if (configuration.model.architecture) return false;  // its parts have the documents as well
  if (strategy.stage_placement() == workload::StagePlacement::bidirectional) return false;
  std::uint64_t ops = 0;
  for (const std::uint32_t program : balanced.ranks->program_of_rank) ops += balanced.programs[program].ops.size();
  return ops <= kMaxDrawnOps;
}

DrawnDocuments::DrawnDocuments(const Configuration& configuration, const RankLayout& layout,
                               const workload::GivenPrograms& balanced)
    : configuration_(configuration), layout_(layout), balanced_(balanced) {
  MANYWORLDS_CHECK(can_draw_documents(configuration, balanced), "documents of a step that has no draws");
  for (const workload::RankClass& one : layout.classes())
    mean_.push_back(attention_times(
        workload::stage_work(configuration.model, configuration.strategy, configuration.gpu_of(one), one)));
}

const DrawnDocuments::PassTimes& DrawnDocuments::times_of(std::uint32_t rank_class,
                                                          const std::vector<std::size_t>& samples) {
  const auto [known, is_new] = drawn_.try_emplace({rank_class, samples});
  if (!is_new) return known->second;
  workload::Model model = configuration_.model;
  model.documents = only(*model.documents, samples);
  const workload::RankClass& one = layout_.classes()[rank_class];
  known->second =
      attention_times(workload::stage_work(model, configuration_.strategy, configuration_.gpu_of(one), one));
  return known->second;
}

workload::Program DrawnDocuments::drawn_program(std::uint32_t rank_class, std::int64_t replica, std::uint64_t draw) {
  const std::int64_t width = configuration_.strategy.micro_batch;
  const std::size_t packed = configuration_.model.documents->samples.size();
  const auto samples_of = [&](std::int64_t micro_batch) {
    std::vector<std::size_t> samples;
    for (std::int64_t i = micro_batch * width; i < (micro_batch + 1) * width; ++i)
      samples.push_back(decision_hash(draw, static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(i)) %
                        packed);
    return samples;
  };
  struct Spread {
    Time before = 0, sum = 0, wanted = 0;  // of durations in front, of all, and what they are to sum to
    Time given = 0;
  };
  std::map<PipelinePass, Spread> passes;
  workload::Program program = balanced_.programs[rank_class];
  for_each_pass_kernel(program, [&](const PipelinePass& pass, Time& duration) { passes[pass].sum += duration; });
  for (auto& [pass, spread] : passes) {
    const std::pair at{pass.kind, pass.chunk};
    const Time difference = times_of(rank_class, samples_of(pass.micro_batch)).at(at) - mean_[rank_class].at(at);
    spread.wanted = std::max<Time>(spread.sum + difference, 0);
  }
  for_each_pass_kernel(program, [&](const PipelinePass& pass, Time& duration) {
    Spread& spread = passes.at(pass);
    spread.before += duration;
    const Time up_to = spread.sum > 0 ? static_cast<Time>(Int128{spread.before} * spread.wanted / spread.sum) : 0;
    duration = up_to - spread.given;
    spread.given = up_to;
  });
  return program;
}

workload::GivenPrograms DrawnDocuments::draw(std::uint64_t draw) {
  const workload::Strategy& strategy = configuration_.strategy;
  workload::GivenPrograms result;
  auto ranks = std::make_shared<workload::GivenRanks>(*balanced_.ranks);
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> numbers;  // by class and replica
  for (std::size_t rank = 0; rank < ranks->program_of_rank.size(); ++rank) {
    std::uint32_t& program = ranks->program_of_rank[rank];
    const std::int64_t replica = static_cast<std::int64_t>(rank) / (strategy.tp * strategy.cp) % strategy.dp;
    const auto [known, is_new] =
        numbers.try_emplace({program, replica}, static_cast<std::uint32_t>(result.programs.size()));
    if (is_new) {
      result.programs.push_back(drawn_program(program, replica, draw));
      result.kernels.push_back(balanced_.kernels[program]);
    }
    program = known->second;
  }
  result.allocated.resize(result.programs.size());
  result.ranks = std::move(ranks);
  result.slowed = balanced_.slowed;
  result.units_to_move = balanced_.units_to_move, result.units_to_reduce = balanced_.units_to_reduce;
  result.tokens_per_step = balanced_.tokens_per_step;
  result.is_synchronised = balanced_.is_synchronised;
  result.set_key();
  return result;
}

}  // namespace manyworlds::core::step
