#include "experiments/simai/rank_groups.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "core/base/error.hpp"

namespace manyworlds::experiments::simai {
namespace {

using core::workload::DimensionKind;
using core::workload::StepPart;

struct KindInfo {
  std::string_view name, awaited_stream, stream;
  StepPart exposed;
};
/// In the order of GroupKind.
constexpr std::array<KindInfo, 8> kKinds{{{"tensor", "tensor", "data", StepPart::exposed_tp},
                                          {"expert", "expert", "expert_data", StepPart::exposed_ep},
                                          {"data", "tensor", "data", StepPart::exposed_dp},
                                          {"expert_data", "expert", "expert_data", StepPart::exposed_dp},
                                          {"expert_tensor", "expert", "expert_data", StepPart::exposed_ep},
                                          {"pipeline", "tensor", "data", StepPart::exposed_pp},
                                          {"embedding", "tensor", "data", StepPart::exposed_dp},
                                          {"all", "tensor", "data", StepPart::exposed_other}}};

const KindInfo& info_of(GroupKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

/// Ranks of a group are `stride` apart.
struct Extent {
  std::uint32_t members, stride;
};

Extent extent_of(const RankOrder& order, GroupKind kind) {
  switch (kind) {
    case GroupKind::tensor:
      return {order.tp, 1};
    case GroupKind::expert:
      return {order.ep, order.tp};
    case GroupKind::data:
      return {order.dp(), order.tp};
    case GroupKind::expert_data:
      return {order.dp() / order.ep, order.tp * order.ep};
    case GroupKind::expert_tensor:
      return {order.tp * order.ep, 1};
    case GroupKind::pipeline:
      return {order.pp, order.stage_ranks()};
    case GroupKind::embedding:
      return {order.pp > 1 ? 2u : 1u, order.stage_ranks() * (order.pp > 1 ? order.pp - 1 : 1)};
    case GroupKind::all:
      return {order.gpus, 1};
  }
  MANYWORLDS_CHECK(false, "kind {}", static_cast<int>(kind));
  return {};
}

}  // namespace

void RankOrder::check() const {
  const std::uint64_t of_model = std::uint64_t{tp} * pp;
  if (gpus % of_model != 0)
    throw core::InputError(fmt::format("{} GPUs are no multiple of {} = {} tensor-parallel ranks times {} stages", gpus,
                                       of_model, tp, pp));
  if (dp() % ep != 0)
    throw core::InputError(
        fmt::format("{} expert-parallel ranks do not divide the {} replicas, {} GPUs over tp {} and pp {}", ep, dp(),
                    gpus, tp, pp));
}

std::uint32_t RankOrder::members(GroupKind kind) const {
  return extent_of(*this, kind).members;
}

std::vector<std::vector<std::uint32_t>> RankOrder::groups(GroupKind kind) const {
  const auto [members, stride] = extent_of(*this, kind);
  const std::uint32_t block = kind == GroupKind::embedding ? gpus : members * stride;
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::uint32_t begin = 0; begin < gpus; begin += block)
    for (std::uint32_t offset = 0; offset < (kind == GroupKind::embedding ? stage_ranks() : stride); ++offset) {
      std::vector<std::uint32_t>& group = groups.emplace_back();
      for (std::uint32_t i = 0; i < members; ++i) group.push_back(begin + offset + i * stride);
    }
  return groups;
}

std::uint32_t Dimensions::add(std::string_view name, DimensionKind kind, StepPart exposed) {
  ranks_.dimensions.push_back({std::string(name), kind, exposed});
  return static_cast<std::uint32_t>(ranks_.dimensions.size() - 1);
}

std::optional<std::uint32_t> Dimensions::of(GroupKind kind, bool is_awaited) {
  if (order_.members(kind) < 2) return std::nullopt;
  const auto known = of_groups_.find({kind, is_awaited});
  if (known != of_groups_.end()) return known->second;
  const bool is_second = of_groups_.count({kind, !is_awaited}) > 0;
  const std::string name = fmt::format("{}{}", info_of(kind).name,
                                       !is_second   ? ""
                                       : is_awaited ? "_awaited"
                                                    : "_beside");
  const std::uint32_t dimension = add(name, DimensionKind::groups, info_of(kind).exposed);
  for (std::vector<std::uint32_t>& ranks : order_.groups(kind)) ranks_.groups.push_back({dimension, std::move(ranks)});
  of_groups_[{kind, is_awaited}] = dimension;
  return dimension;
}

std::uint32_t Dimensions::to_neighbour(bool is_next) {
  const auto known = of_pairs_.find(is_next);
  if (known != of_pairs_.end()) return known->second;
  const std::uint32_t dimension =
      add(is_next ? "to_next_stage" : "to_previous_stage", DimensionKind::pairs, StepPart::exposed_pp);
  const std::uint32_t stride = order_.stage_ranks();
  for (std::uint32_t rank = 0; rank + stride < order_.gpus; ++rank)
    ranks_.groups.push_back({dimension, is_next ? std::vector{rank, rank + stride} : std::vector{rank + stride, rank}});
  of_pairs_[is_next] = dimension;
  return dimension;
}

std::string_view stream_name(GroupKind kind, bool is_awaited) {
  return is_awaited ? info_of(kind).awaited_stream : info_of(kind).stream;
}

}  // namespace manyworlds::experiments::simai
