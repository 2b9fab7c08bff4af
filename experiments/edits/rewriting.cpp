#include "experiments/edits/rewriting.hpp"

#include <algorithm>
#include <set>

namespace manyworlds::experiments::edits {

using programs::RankProgram;
using programs::StreamOp;

Rewriting::Rewriting(const RankProgram& program) : program_(program) {
  const std::size_t ops = program.ops.size();
  members_.resize(ops), added_before_.resize(ops), added_after_.resize(ops), waits_for_added_.resize(ops);
  std::vector<std::uint32_t> last(program.streams.size(), kDropped);
  for (std::uint32_t op = 0; op < ops; ++op) {
    into_.push_back(op);
    before_on_stream_.push_back(last[program.ops[op].stream]);
    last[program.ops[op].stream] = op;
  }
}

void Rewriting::drop(std::uint32_t op) {
  into_[op] = kDropped;
}

void Rewriting::join(const std::vector<std::uint32_t>& ops, std::uint32_t into) {
  for (const std::uint32_t op : ops) {
    into_[op] = into;
    if (op != into) members_[into].push_back(op);
  }
}

void Rewriting::add_before(std::uint32_t op, StreamOp added) {
  added_before_[op].push_back(static_cast<std::uint32_t>(added_.size()));
  added_.push_back({std::move(added), op});
}

void Rewriting::add_after(std::uint32_t op, StreamOp added) {
  added_after_[op].push_back(static_cast<std::uint32_t>(added_.size()));
  added_.push_back({std::move(added), op});
}

void Rewriting::wait_for_added(std::uint32_t op) {
  waits_for_added_[op].push_back(static_cast<std::uint32_t>(added_.size() - 1));
}

/// Returns what stands for an operation: itself, what it was joined into, or what a dropped one waited for.
std::vector<std::uint32_t> Rewriting::kept_ones(std::uint32_t op) const {
  std::vector<std::uint32_t> kept, open{op};
  std::set<std::uint32_t> seen{op};
  const auto look_at = [&](std::uint32_t next) {
    if (next != kDropped && seen.insert(next).second) open.push_back(next);
  };
  while (!open.empty()) {
    const std::uint32_t one = open.back();
    open.pop_back();
    if (into_[one] != kDropped) {
      kept.push_back(into_[one]);
      continue;
    }
    for (const std::uint32_t before : program_.ops[one].after) look_at(before);
    look_at(before_on_stream_[one]);
  }
  return kept;
}

RankProgram Rewriting::finish() const {
  RankProgram result;
  result.name = program_.name;
  result.streams = program_.streams;
  std::vector<std::uint32_t> number(program_.ops.size()), added_number(added_.size());
  std::vector<std::vector<std::uint32_t>> pending(program_.streams.size());  // waits of dropped ones, by stream
  auto allocation = program_.allocations.begin();
  const auto allocate_before = [&](std::uint32_t op) {
    for (; allocation != program_.allocations.end() && allocation->op <= op; ++allocation)
      result.allocations.push_back({static_cast<std::uint32_t>(result.ops.size()), allocation->bytes});
  };
  const auto append = [&](StreamOp op, std::vector<std::uint32_t> after) {
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    op.after = std::move(after);
    result.ops.push_back(std::move(op));
    return static_cast<std::uint32_t>(result.ops.size() - 1);
  };
  const auto waits_of = [&](std::uint32_t op) {
    std::vector<std::uint32_t> after;
    const auto add = [&](std::uint32_t member) {
      for (const std::uint32_t before : program_.ops[member].after)
        for (const std::uint32_t kept : kept_ones(before))
          if (kept != into_[op]) after.push_back(number[kept]);
      for (const std::uint32_t added : waits_for_added_[member]) after.push_back(added_number[added]);
    };
    add(op);
    for (const std::uint32_t member : members_[op]) add(member);
    return after;
  };
  for (std::uint32_t op = 0; op < program_.ops.size(); ++op) {
    allocate_before(op);
    const std::uint32_t stream = program_.ops[op].stream;
    for (const std::uint32_t added : added_before_[op]) {
      std::vector<std::uint32_t> after = waits_of(op);
      if (before_on_stream_[op] != kDropped)
        for (const std::uint32_t kept : kept_ones(before_on_stream_[op])) after.push_back(number[kept]);
      added_number[added] = append(added_[added].op, std::move(after));
    }
    if (into_[op] == op) {
      std::vector<std::uint32_t> after = waits_of(op);
      after.insert(after.end(), pending[stream].begin(), pending[stream].end());
      pending[stream].clear();
      for (const std::uint32_t added : added_before_[op]) after.push_back(added_number[added]);
      number[op] = append(program_.ops[op], std::move(after));
    } else if (into_[op] == kDropped) {
      const std::vector<std::uint32_t> after = waits_of(op);
      pending[stream].insert(pending[stream].end(), after.begin(), after.end());
    }
    for (const std::uint32_t added : added_after_[op]) {
      std::vector<std::uint32_t> after;
      for (const std::uint32_t kept : kept_ones(op)) after.push_back(number[kept]);
      added_number[added] = append(added_[added].op, std::move(after));
    }
  }
  allocate_before(UINT32_MAX);
  return result;
}

}  // namespace manyworlds::experiments::edits
