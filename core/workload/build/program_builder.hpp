// Builder of a program: operations in issue order, and the pending waits of the next kernel.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/workload/layer/operators.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::workload {

class ProgramBuilder {
 public:
  using Waits = std::vector<std::uint32_t>;

  std::uint32_t new_label(std::string text, std::optional<PipelinePass> pass = std::nullopt) {
    program_.labels.push_back(std::move(text));
    program_.passes.push_back(pass);
    return static_cast<std::uint32_t>(program_.labels.size() - 1);
  }
  /// Returns the label that all operations of this name share; the name must be a string literal.
  std::uint32_t label(std::string_view text) {
    for (const auto& [known, label] : labels_)
      if (known.data() == text.data() && known.size() == text.size()) return label;
    const auto same = std::find_if(labels_.begin(), labels_.end(), [&](const auto& one) { return one.first == text; });
    return labels_.emplace_back(text, same == labels_.end() ? new_label(std::string(text)) : same->second).second;
  }

  /// Appends a kernel that has all pending waits.
  void compute(const KernelOp& kernel, std::uint32_t label) {
    last_compute_ = issue(Stream::compute, kernel, label, pending_);
    pending_.clear();
  }
  std::uint32_t collective(Stream stream, Role role, collective::Kind kind, std::int64_t bytes, std::string_view name,
                           const Waits& waits) {
    return issue(stream, CollectiveCall{role, kind, 0, bytes}, label(name), waits);
  }

  /// Appends a copy between GPU and host, on a stream of its own.
  std::uint32_t copy(Stream stream, Time duration_ps, std::string_view name, const Waits& waits) {
    return issue(stream, KernelOp{.duration_ps = duration_ps}, label(name), waits);
  }

  /// Appends launches of the host, which takes them one after another.
  std::uint32_t launch(Time duration_ps, const Waits& waits) {
    return issue(Stream::host, KernelOp{StepPart::host, duration_ps}, label("launch"), waits);
  }

  /// A collective after all work so far; an operation that waits for it need not wait for its `prior_waits` as well.
  struct Started {
    std::uint32_t op = 0;
    Waits prior_waits;
  };
  Started start(Stream stream, Role role, const CollectiveStart& start) {
    const CollectiveCall call{role, start.kind, split_index(start.split), start.bytes};
    Started started{0, pending_};
    if (last_compute_) pending_.push_back(*last_compute_);  // all_work_so_far() without a list of its own
    started.op = issue(stream, call, label(start.name), pending_);
    pending_.resize(started.prior_waits.size());
    return started;
  }
  void replace_waits(const Started& started) {
    const auto is_prior = [&](std::uint32_t op) {
      return std::find(started.prior_waits.begin(), started.prior_waits.end(), op) != started.prior_waits.end();
    };
    std::erase_if(pending_, is_prior);
    wait_for(started.op);
  }

  Role role_of(std::uint32_t op) const { return std::get<CollectiveCall>(program_.ops[op].action).role; }

  /// Makes the next kernel wait for `op` as well.
  void wait_for(std::uint32_t op) {
    if (std::find(pending_.begin(), pending_.end(), op) == pending_.end()) pending_.push_back(op);
  }
  void wait_for(const std::optional<std::uint32_t>& op) {
    if (op) wait_for(*op);
  }
  void clear_waits() { pending_.clear(); }
  /// Replaces the pending waits of the next kernel and returns the old ones.
  Waits exchange_waits(Waits waits) { return std::exchange(pending_, std::move(waits)); }

  Waits last_kernel() const { return last_compute_ ? Waits{*last_compute_} : Waits{}; }
  /// Returns the waits of communication that needs all work so far: the last kernel, and the pending waits.
  Waits all_work_so_far() const {
    Waits waits = pending_;
    if (last_compute_) waits.push_back(*last_compute_);
    return waits;
  }

  Program take() { return std::move(program_); }

 private:
  std::uint32_t split_index(const collective::Split& split) {
    if (split.even()) return 0;
    const auto [known, is_new] = splits_.try_emplace(split, static_cast<std::uint32_t>(program_.splits.size()));
    if (is_new) program_.splits.push_back(split);
    return known->second;
  }

  /// Streams run in order, so waits for operations of the same stream are left out.
  std::uint32_t issue(Stream stream, const Op::Action& action, std::uint32_t label, const Waits& waits) {
    const auto waits_begin = static_cast<std::uint32_t>(program_.waits.size());
    for (const std::uint32_t wait : waits)
      if (program_.ops[wait].stream != stream) program_.waits.push_back(wait);
    program_.ops.push_back({stream, label, waits_begin, static_cast<std::uint32_t>(program_.waits.size()), action});
    return static_cast<std::uint32_t>(program_.ops.size() - 1);
  }

  Program program_;
  std::vector<std::pair<std::string_view, std::uint32_t>> labels_;  // by address: almost always the same literal
  std::map<collective::Split, std::uint32_t> splits_;               // uneven splits
  Waits pending_;
  std::optional<std::uint32_t> last_compute_;
};

}  // namespace manyworlds::core::workload
