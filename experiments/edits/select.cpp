#include "experiments/edits/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/programs/words.hpp"

namespace manyworlds::experiments::edits {
namespace {

using programs::Communication;
using programs::CopyWork;
using programs::HostWork;
using programs::KernelWork;
using programs::StreamOp;
using programs::StreamPrograms;

OpKind kind_of(const StreamOp& op) {
  if (std::holds_alternative<KernelWork>(op.work)) return OpKind::kernel;
  if (std::holds_alternative<CopyWork>(op.work)) return OpKind::copy;
  if (std::holds_alternative<HostWork>(op.work)) return OpKind::host;
  const auto& call = std::get<Communication>(op.work);
  if (call.kind != core::collective::Kind::send) return OpKind::collective;
  return call.receives ? OpKind::receive : OpKind::send;
}

bool is_of_patterns(const StreamOp& op, const StreamPrograms& all, const Selection& selection) {
  if (selection.kind == OpKind::recorded) return op.began_us >= 0;
  if (kind_of(op) != selection.kind || !matches(selection.what, kind_text(all, op)) ||
      !matches(selection.dimension, dimension_of(all, op)) || !matches(selection.part, part_of(op)))
    return false;
  if (selection.gemm.empty()) return true;
  const std::string product = product_text(op);
  return !product.empty() && matches(selection.gemm, product);
}

}  // namespace

std::string_view kind_text(const StreamPrograms& all, const StreamOp& op) {
  if (const auto* copy = std::get_if<CopyWork>(&op.work))
    return programs::kDirections[static_cast<std::size_t>(copy->direction)];
  const auto* call = std::get_if<Communication>(&op.work);
  if (call == nullptr) return all.names[op.name];
  return call->kind == core::collective::Kind::send ? dimension_of(all, op) : core::collective::name_of(call->kind);
}

std::string_view dimension_of(const StreamPrograms& all, const StreamOp& op) {
  const auto* call = std::get_if<Communication>(&op.work);
  return call == nullptr ? std::string_view() : all.ranks.dimensions[call->dimension].name;
}

std::string_view part_of(const StreamOp& op) {
  const auto* kernel = std::get_if<KernelWork>(&op.work);
  return kernel == nullptr ? std::string_view() : core::workload::name_of(kernel->part);
}

std::string product_text(const StreamOp& op) {
  const auto* kernel = std::get_if<KernelWork>(&op.work);
  if (kernel == nullptr || !kernel->shape.gemm) return "";
  const programs::GemmShape& gemm = *kernel->shape.gemm;
  return fmt::format("{},{},{},{}", gemm.m, gemm.n, gemm.k, gemm.batch);
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, from = 0, star = std::string_view::npos, after_star = 0;
  while (from < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++, after_star = from;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[from])) {
      ++at, ++from;
    } else if (star != std::string_view::npos) {
      at = star + 1, from = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

std::vector<std::uint32_t> selected(const StreamPrograms& all, std::size_t number, const Selection& selection) {
  const programs::RankProgram& program = all.programs[number];
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const StreamOp& op = program.ops[i];
    if (is_of_patterns(op, all, selection) && matches(selection.stream, program.streams[op.stream].name) &&
        matches(selection.name, all.names[op.name]))
      found.push_back(i);
  }
  if (selection.is_last && !found.empty()) found = {found.back()};
  if (selection.occurrences.empty()) return found;
  std::vector<std::uint32_t> some;
  for (const std::uint32_t occurrence : selection.occurrences)
    if (occurrence < found.size()) some.push_back(found[occurrence]);
  return some;
}

std::vector<std::size_t> separate(StreamPrograms& all, const Selection& selection) {
  std::vector<std::uint32_t>& program_of_rank = all.ranks.program_of_rank;
  std::vector<std::size_t> programs;
  if (selection.ranks.empty()) {
    for (std::size_t i = 0; i < all.programs.size(); ++i) programs.push_back(i);
    return programs;
  }
  if (selection.ranks.back() >= program_of_rank.size())
    throw core::InputError(fmt::format("'ranks' must be below {}, the ranks of the programs, not {}",
                                       program_of_rank.size(), selection.ranks.back()));
  std::map<std::uint32_t, std::size_t> ranks_left;
  for (const std::uint32_t program : program_of_rank) ++ranks_left[program];
  for (const std::uint32_t rank : selection.ranks) --ranks_left[program_of_rank[rank]];
  std::map<std::uint32_t, std::uint32_t> own;  // program of the selected ones, by the program of all
  for (const std::uint32_t rank : selection.ranks) {
    const std::uint32_t shared = program_of_rank[rank];
    if (ranks_left[shared] > 0 && !own.contains(shared)) {
      own.emplace(shared, static_cast<std::uint32_t>(all.programs.size()));
      programs::RankProgram copy = all.programs[shared];
      copy.name += ", edited";
      all.programs.push_back(std::move(copy));
    } else {
      own.try_emplace(shared, shared);
    }
    program_of_rank[rank] = own.at(shared);
  }
  for (const auto& [shared, program] : own) programs.push_back(program);
  std::sort(programs.begin(), programs.end());
  return programs;
}

}  // namespace manyworlds::experiments::edits
