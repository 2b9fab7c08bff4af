#include "core/collective/transfers/given_transfers.hpp"

#include <deque>
#include <map>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

/// What has ended: of every connection the last transfer, which all before it precede, and joins.
class Ended {
 public:
  static Ended transfer(std::uint32_t connection, std::uint32_t number) {
    Ended result;
    result.last_.emplace(connection, number);
    return result;
  }
  static Ended join(std::uint32_t number) {
    Ended result;
    result.last_.emplace(kJoin | number, number);
    return result;
  }

  void add(const Ended& other) {
    for (const auto& [connection, number] : other.last_) {
      const auto [known, is_new] = last_.try_emplace(connection, number);
      if (!is_new && known->second < number) known->second = number;
    }
  }
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> result;
    for (const auto& [connection, number] : last_) result.push_back(number);
    return result;
  }
  std::size_t size() const { return last_.size(); }

 private:
  static constexpr std::uint64_t kJoin = std::uint64_t{1} << 32;  // joins stand beside connections
  std::map<std::uint64_t, std::uint32_t> last_;
};

class Writer {
 public:
  Writer(const GivenAlgorithm& algorithm, const GivenSink& to) : algorithm_(algorithm), to_(to) {
    for (const ThreadBlock& block : algorithm.blocks) {
      State state{.code = &block};
      if (block.send_to >= 0)
        state.outgoing = connection(block.member, static_cast<std::uint32_t>(block.send_to), block.channel);
      if (block.receive_from >= 0)
        state.incoming = connection(static_cast<std::uint32_t>(block.receive_from), block.member, block.channel);
      blocks_.push_back(std::move(state));
    }
  }

  /// Adds a loop in which chunks have `bytes`.
  void add_loop(std::int64_t bytes) {
    for (State& block : blocks_) block.next = 0, block.told.clear();
    std::size_t left = 0;
    for (const State& block : blocks_) left += block.code->steps.size();
    for (bool moves = true; moves;) {
      moves = false;
      for (State& block : blocks_)
        while (can_run(block)) run_step(block, bytes), --left, moves = true;
    }
    MANYWORLDS_CHECK(left == 0, "{} steps of algorithm '{}' never run", left, algorithm_.name);
  }

 private:
  struct Connection {
    std::deque<std::uint32_t> arriving;  // transfers that the receiver has not come to
    std::deque<Ended> freed;             // of the latest receives, one for each slot: what has ended when it is free
  };
  struct State {
    const ThreadBlock* code = nullptr;
    std::uint32_t outgoing = 0, incoming = 0;  // connections
    std::size_t next = 0;                      // step
    Ended ended = {};                          // with the step before
    std::map<std::size_t, Ended> told = {};    // with the steps of this loop that others wait for
    bool has_ended() const { return next == code->steps.size(); }
    const BlockStep& step() const { return code->steps[next]; }
  };

  std::uint32_t connection(std::uint32_t from, std::uint32_t to, std::uint32_t channel) {
    const auto [known, is_new] =
        numbers_.try_emplace({from, to, channel}, static_cast<std::uint32_t>(connections_.size()));
    if (is_new) connections_.emplace_back();
    return known->second;
  }

  State& awaited(const BlockStep& step) { return blocks_[static_cast<std::size_t>(step.wait_block)]; }

  bool can_run(const State& block) {
    if (block.has_ended()) return false;
    const BlockStep& step = block.step();
    if (step.wait_block >= 0 && awaited(step).next <= static_cast<std::size_t>(step.wait_step)) return false;
    if (step.receives && connections_[block.incoming].arriving.empty()) return false;
    return !step.sends || std::ssize(connections_[block.outgoing].arriving) < algorithm_.slots;
  }

  void run_step(State& block, std::int64_t chunk_bytes) {
    const BlockStep& step = block.step();
    if (step.wait_block >= 0) block.ended.add(awaited(step).told.at(static_cast<std::size_t>(step.wait_step)));
    if (step.receives) {
      std::deque<std::uint32_t>& arriving = connections_[block.incoming].arriving;
      block.ended.add(Ended::transfer(block.incoming, arriving.front()));
      arriving.pop_front();
      if (!step.keeps_slot) connections_[block.incoming].freed.push_back(block.ended);
    }
    if (step.sends) send(block, step.chunks * chunk_bytes);
    if (step.receives && step.keeps_slot) connections_[block.incoming].freed.push_back(block.ended);
    if (step.is_waited_for) {
      if (block.ended.size() > 2) block.ended = Ended::join(to_.join(block.code->member, block.ended.numbers()));
      block.told.emplace(block.next, block.ended);
    }
    ++block.next;
  }

  void send(State& block, std::int64_t bytes) {
    Connection& to = connections_[block.outgoing];
    Ended after = block.ended;
    if (std::ssize(to.freed) + std::ssize(to.arriving) >= algorithm_.slots)
      after.add(to.freed.front()), to.freed.pop_front();
    const std::vector<std::uint32_t> numbers = after.numbers();
    const std::uint32_t transfer = to_.transfer(
        {block.code->member, static_cast<std::uint32_t>(block.code->send_to), block.code->channel, bytes, numbers});
    to.arriving.push_back(transfer);
    block.ended = Ended::transfer(block.outgoing, transfer);
  }

  const GivenAlgorithm& algorithm_;
  const GivenSink& to_;
  std::vector<State> blocks_;
  std::vector<Connection> connections_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace

void write_given(const GivenAlgorithm& algorithm, std::int64_t bytes, const GivenSink& to) {
  const Loops loops = loops_of(bytes / algorithm.chunks, algorithm.loop_bytes);
  Writer writer(algorithm, to);
  for (std::int64_t loop = 0; loop < loops.count; ++loop)
    writer.add_loop(loop + 1 < loops.count ? loops.most : loops.last);
}

}  // namespace manyworlds::core::collective
