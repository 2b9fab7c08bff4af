#include "experiments/programs/cluster_gpus.hpp"

#include <map>
#include <utility>

namespace manyworlds::experiments::programs {
namespace {

std::uint32_t kind_of(const core::workload::GivenRanks& ranks, const ClusterGpus& gpus, std::uint32_t rank) {
  const std::uint32_t gpu = ranks.gpu_of_rank.empty() ? rank : ranks.gpu_of_rank[rank];
  return gpu < gpus.kind_of_gpu.size() ? gpus.kind_of_gpu[gpu] : 0;
}

}  // namespace

ProgramsByKind programs_by_kind(const StreamPrograms& programs, const ClusterGpus& gpus) {
  const core::workload::GivenRanks& ranks = programs.ranks;
  const auto count = static_cast<std::uint32_t>(ranks.program_of_rank.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;  // by program and kind
  for (std::uint32_t rank = 0; rank < count; ++rank)
    numbers.try_emplace({ranks.program_of_rank[rank], kind_of(ranks, gpus, rank)}, 0);
  ProgramsByKind result;
  for (auto& [which, number] : numbers) {
    number = static_cast<std::uint32_t>(result.program.size());
    result.program.push_back(which.first);
    result.kind.push_back(which.second);
  }
  result.ranks.resize(result.program.size());
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    result.program_of_rank.push_back(numbers.at({ranks.program_of_rank[rank], kind_of(ranks, gpus, rank)}));
    ++result.ranks[result.program_of_rank.back()];
  }
  return result;
}

}  // namespace manyworlds::experiments::programs
