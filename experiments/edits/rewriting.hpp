// Operations of a program taken out, joined and added, with what waits for them kept in order.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::edits {

class Rewriting {
 public:
  /// `program` must outlive this.
  explicit Rewriting(const programs::RankProgram& program);

  /// Takes an operation out. What waited for it, and the next operation on its stream, wait for what it waited for.
  void drop(std::uint32_t op);
  /// Makes operations one with `into`, which is one of them: it waits for what any of them waited for, and what waited
  /// for one of them waits for it. All that they wait for must come before `into`, and all that waits for them after.
  void join(const std::vector<std::uint32_t>& ops, std::uint32_t into);
  /// Adds an operation right before or after another one. `after` of an operation that is added is not looked at: one
  /// that is added after another waits for it, and one that is added before another waits for what that waits for.
  void add_before(std::uint32_t op, programs::StreamOp added);
  void add_after(std::uint32_t op, programs::StreamOp added);
  /// Lets an operation wait for the last one that was added.
  void wait_for_added(std::uint32_t op);

  /// Returns the operations in their new order and the allocations before them.
  programs::RankProgram finish() const;

 private:
  static constexpr std::uint32_t kDropped = UINT32_MAX;
  struct Added {
    programs::StreamOp op;
    std::uint32_t beside = 0;
  };

  std::vector<std::uint32_t> kept_ones(std::uint32_t op) const;

  const programs::RankProgram& program_;
  std::vector<std::uint32_t> into_;                  // by operation: itself, another one, or kDropped
  std::vector<std::uint32_t> before_on_stream_;      // by operation; kDropped: none
  std::vector<std::vector<std::uint32_t>> members_;  // by operation: those that were joined into it
  std::vector<Added> added_;
  std::vector<std::vector<std::uint32_t>> added_before_, added_after_, waits_for_added_;  // by operation
};

}  // namespace manyworlds::experiments::edits
