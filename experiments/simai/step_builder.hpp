// Builds the program of a rank in the order in which it issues its operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/programs/names.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::simai {

/// What runs next waits for what ran last, except operations beside(), which end() waits for.
class StepBuilder {
 public:
  StepBuilder(programs::RankProgram& program, programs::Names& names) : program_(program), names_(names) {}

  /// Adds an operation that what follows waits for.
  template <class Work>
  void next(std::string_view stream, const std::string& name, Work work) {
    add(stream, name, std::move(work), last_);
    before_ = std::move(last_);
    last_ = {static_cast<std::uint32_t>(program_.ops.size() - 1)};
  }
  /// Adds an operation that begins as the last one does, and that what follows waits for too.
  template <class Work>
  void along(std::string_view stream, const std::string& name, Work work) {
    add(stream, name, std::move(work), before_);
    last_.push_back(static_cast<std::uint32_t>(program_.ops.size() - 1));
  }
  /// Adds an operation that only end() and rejoin() wait for, and returns its number.
  template <class Work>
  std::uint32_t beside(std::string_view stream, const std::string& name, Work work) {
    add(stream, name, std::move(work), last_);
    const auto number = static_cast<std::uint32_t>(program_.ops.size() - 1);
    beside_[program_.ops.back().stream] = number;
    return number;
  }
  /// Lets what follows wait for an operation too.
  void rejoin(std::uint32_t op) {
    last_.push_back(op);
    const auto known = beside_.find(program_.ops[op].stream);
    if (known != beside_.end() && known->second == op) beside_.erase(known);
  }
  /// Adds the operation that waits for all others.
  template <class Work>
  void end(std::string_view stream, const std::string& name, Work work) {
    for (const auto& [of, op] : beside_) last_.push_back(op);
    next(stream, name, std::move(work));
  }
  bool is_anything_beside() const { return !beside_.empty(); }
  std::int64_t waits() const { return waits_; }

 private:
  template <class Work>
  void add(std::string_view stream, const std::string& name, Work work, const std::vector<std::uint32_t>& after) {
    programs::StreamOp op;
    op.stream = stream_of(stream);
    op.name = names_(name);
    for (const std::uint32_t before : after)
      if (program_.ops[before].stream != op.stream) op.after.push_back(before);
    std::sort(op.after.begin(), op.after.end());
    waits_ += std::ssize(op.after);
    op.work = std::move(work);
    program_.ops.push_back(std::move(op));
  }

  std::uint32_t stream_of(std::string_view name) {
    for (std::uint32_t i = 0; i < program_.streams.size(); ++i)
      if (program_.streams[i].name == name) return i;
    program_.streams.push_back({std::string(name)});
    return static_cast<std::uint32_t>(program_.streams.size() - 1);
  }

  programs::RankProgram& program_;
  programs::Names& names_;
  std::vector<std::uint32_t> last_, before_;       // what the next operation waits for, and what the last one did
  std::map<std::uint32_t, std::uint32_t> beside_;  // the last one, by stream
  std::int64_t waits_ = 0;
};

}  // namespace manyworlds::experiments::simai
