// Plays a DAG with sets of contributions instead of bytes: every transfer takes a time drawn at random, carries what
// its source holds when it starts, and leaves it at its destination when it ends.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <bitset>
#include <map>
#include <queue>
#include <random>
#include <set>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::tests {

using namespace manyworlds::core::collective;

/// Members whose contribution is in a segment of the buffer.
using Contributions = std::bitset<128>;

/// The buffer cut where any range of the trace begins or ends, and what every member holds of each segment.
class Buffers {
 public:
  Buffers(const Shape& shape, const Dag& dag, const Trace& trace) : shape_(shape) {
    std::set<std::int64_t> cuts{0, size()};
    for (const Trace::Range& range : trace.ranges) cuts.insert({range.begin, range.end});
    if (shape.kind == Kind::all_to_all) lay_out_messages();
    for (const Message& message : messages_) cuts.insert(message.begin);
    for (std::uint32_t i = 0; i < shape.members && messages_.empty(); ++i)
      cuts.insert(chunk_begin(shape.bytes, shape.members, i));
    begins_.assign(cuts.begin(), cuts.end());
    begins_.pop_back();  // the end of the buffer
    held_.assign(shape.members + dag.switches.size(), std::vector<Contributions>(begins_.size()));
    for (std::uint32_t member = 0; member < shape.members; ++member)
      for (std::size_t i = 0; i < begins_.size(); ++i)
        if (begins_with(member, begins_[i])) held_[member][i].set(member);
  }

  std::int64_t size() const { return shape_.kind == Kind::all_to_all ? shape_.members * shape_.bytes : shape_.bytes; }
  std::size_t segments() const { return begins_.size(); }
  std::pair<std::size_t, std::size_t> segments_of(const Trace::Range& range) const {
    const auto at = [&](std::int64_t byte) {
      return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), byte) - begins_.begin());
    };
    return {at(range.begin), at(range.end)};
  }
  Contributions& held(std::uint32_t member, std::size_t segment) { return held_[member][segment]; }

  /// What the operation promises to `member` of a segment; nothing means that anything goes.
  Contributions promised(std::uint32_t member, std::size_t segment) const {
    const std::int64_t byte = begins_[segment];
    Contributions all;
    for (std::uint32_t i = 0; i < shape_.members; ++i) all.set(i);
    if (shape_.kind == Kind::all_reduce) return all;
    if (shape_.kind == Kind::reduce) return member == shape_.root() ? all : Contributions();
    if (shape_.kind == Kind::reduce_scatter) return block(byte) == member ? all : Contributions();
    if (shape_.kind == Kind::all_to_all && message(byte).to != member) return {};
    return Contributions().set(owner(byte));
  }

 private:
  std::uint32_t block(std::int64_t byte) const {
    for (std::uint32_t i = 1; i < shape_.members; ++i)
      if (byte < chunk_begin(shape_.bytes, shape_.members, i)) return i - 1;
    return shape_.members - 1;
  }
  std::uint32_t owner(std::int64_t byte) const {
    if (shape_.kind == Kind::all_gather) return block(byte);
    return shape_.kind == Kind::all_to_all ? message(byte).from : shape_.root();
  }
  bool begins_with(std::uint32_t member, std::int64_t byte) const {
    return shape_.kind == Kind::all_reduce || shape_.kind == Kind::reduce_scatter || shape_.kind == Kind::reduce ||
           owner(byte) == member;
  }

  /// What one member has for another, in the send buffers of all members one after another.
  struct Message {
    std::int64_t begin;
    std::uint32_t from, to;
  };
  void lay_out_messages() {
    std::int64_t begin = 0;
    for (std::uint32_t from = 0; from < shape_.members; ++from)
      for (std::uint32_t to = 0; to < shape_.members; ++to) {
        messages_.push_back({begin, from, to});
        begin += shape_.split.even() ? chunk_bytes(shape_.bytes, shape_.members, to)
                                     : shape_.split.bytes[shape_.split.by_source ? from : to];
      }
    REQUIRE(begin == size());
  }
  const Message& message(std::int64_t byte) const {
    return *std::prev(std::upper_bound(messages_.begin(), messages_.end(), byte,
                                       [](std::int64_t at, const Message& one) { return at < one.begin; }));
  }

  Shape shape_;
  std::vector<Message> messages_;  // of an all-to-all
  std::vector<std::int64_t> begins_;
  std::vector<std::vector<Contributions>> held_;
};

/// Runs transfers and joints as their DAG allows; all members enter at 0. `start` and `end` are called for transfers,
/// which take `lasts(transfer)`.
template <class Lasts, class Start, class End>
void play(const Dag& dag, Lasts lasts, Start start, End end) {
  std::vector<std::uint16_t> wait_count = dag.wait_count;
  std::priority_queue<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::pair<std::uint64_t, std::uint32_t>>,
                      std::greater<>>
      running;
  std::uint64_t now = 0;
  std::vector<std::uint32_t> ready;
  const auto satisfy = [&](std::uint32_t node) {
    if (wait_count[node] == 0) FAIL("node " << node << " waits for less than it has before it");
    if (--wait_count[node] == 0) ready.push_back(node);
  };
  for (const std::uint32_t node : dag.entry) satisfy(node);
  std::size_t done = 0;
  while (!ready.empty() || !running.empty()) {
    while (!ready.empty()) {
      const std::uint32_t node = ready.back();
      ready.pop_back();
      if (node < dag.transfers.size()) {
        start(node);
        running.emplace(now + lasts(node), node);
        continue;
      }
      ++done;
      for (std::uint32_t i = dag.successors_begin[node]; i < dag.successors_begin[node + 1]; ++i)
        satisfy(dag.successors[i]);
    }
    if (running.empty()) break;
    const auto [at, node] = running.top();
    running.pop();
    now = at;
    end(node);
    ++done;
    for (std::uint32_t i = dag.successors_begin[node]; i < dag.successors_begin[node + 1]; ++i)
      satisfy(dag.successors[i]);
  }
  REQUIRE(done == dag.wait_count.size());
}

/// What every transfer carried, by range of the trace and segment.
using Carried = std::vector<std::vector<Contributions>>;

/// Plays it once and checks what it does at every transfer and at the end.
inline Carried play_contributions(const Shape& shape, const Dag& dag, const Trace& trace, std::uint64_t seed) {
  Buffers buffers(shape, dag, trace);
  std::vector<std::pair<std::size_t, std::size_t>> ranges(dag.transfers.size() + 1);  // of the trace, by transfer
  for (std::size_t i = 0, at = 0; i < dag.transfers.size(); ++i) {
    ranges[i].first = at;
    while (at < trace.ranges.size() && trace.ranges[at].transfer == i) ++at;
    ranges[i].second = at;
  }
  std::mt19937_64 random(seed);
  const auto lasts = [&](std::uint32_t) -> std::uint64_t {
    if (seed == 0) return 1;
    return random() % 4 == 0 ? 1 + random() % 1'000 : 1 + random() % 10;
  };
  Carried carried(trace.ranges.size());
  const auto start = [&](std::uint32_t transfer) {
    const std::uint32_t source = dag.pairs[dag.transfers[transfer].pair].first;
    for (std::size_t at = ranges[transfer].first; at < ranges[transfer].second; ++at) {
      const auto [first, last] = buffers.segments_of(trace.ranges[at]);
      for (std::size_t segment = first; segment < last; ++segment) {
        carried[at].push_back(buffers.held(source, segment));
        if (carried[at].back().none()) FAIL("transfer " << transfer << " carries what its source does not have");
      }
    }
  };
  const auto end = [&](std::uint32_t transfer) {
    const std::uint32_t destination = dag.pairs[dag.transfers[transfer].pair].second;
    for (std::size_t at = ranges[transfer].first; at < ranges[transfer].second; ++at) {
      const std::size_t first = buffers.segments_of(trace.ranges[at]).first;
      for (std::size_t i = 0; i < carried[at].size(); ++i) {
        Contributions& held = buffers.held(destination, first + i);
        const bool reduces = trace.effects[transfer] == Effect::reduce;
        if (reduces && (held & carried[at][i]).any()) FAIL("transfer " << transfer << " is added a second time");
        if (!reduces && (held & ~carried[at][i]).any()) FAIL("transfer " << transfer << " overwrites what was there");
        held |= carried[at][i];
      }
    }
  };
  play(dag, lasts, start, end);
  for (std::uint32_t member = 0; member < shape.members; ++member)
    for (std::size_t segment = 0; segment < buffers.segments(); ++segment) {
      const Contributions promised = buffers.promised(member, segment);
      if (promised.any() && buffers.held(member, segment) != promised)
        FAIL("member " << member << " ends with " << buffers.held(member, segment) << " in segment " << segment);
    }
  return carried;
}

}  // namespace manyworlds::tests
