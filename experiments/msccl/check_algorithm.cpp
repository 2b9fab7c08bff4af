#include "experiments/msccl/check_algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <tuple>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/msccl/symbolic_memory.hpp"

namespace manyworlds::experiments::msccl {
namespace {

constexpr std::int64_t kMaxClockWork = 100'000'000;  // thread blocks times steps, to look for races
constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kMaxShown = 8;  // steps of a circle

/// Of each thread block, how many of its steps have ended for certain before now.
using Clock = std::vector<std::uint32_t>;

struct Message {
  std::vector<Value> values;
  Clock clock;
  StepId from;
};

/// The transfers of one thread block to another that were sent and not received.
struct Connection {
  std::uint32_t sender = kNone, receiver = kNone;
  std::deque<Message> messages;
};

class SymbolicRun {
 public:
  SymbolicRun(const Algorithm& algorithm, const std::string& name, bool in_place, bool look_for_races)
      : algorithm_(algorithm), name_(name), in_place_(in_place), races_(look_for_races), memory_(algorithm, in_place) {
    for (std::uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu) {
      first_block_.push_back(static_cast<std::uint32_t>(blocks_.size()));
      for (const ThreadBlock& block : algorithm.gpus[gpu].blocks) {
        const auto number = static_cast<std::uint32_t>(blocks_.size());
        blocks_.push_back({&block, gpu, 0, {}, {}});
        if (block.send >= 0) connection(gpu, static_cast<std::uint32_t>(block.send), block.channel).sender = number;
        if (block.receive >= 0)
          connection(static_cast<std::uint32_t>(block.receive), gpu, block.channel).receiver = number;
      }
    }
    for (Block& block : blocks_) block.clock.resize(races_ ? blocks_.size() : 0);
  }

  void run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::uint32_t number = 0; number < blocks_.size(); ++number)
        while (can_run(blocks_[number])) run_step(number), moves = true;
    }
    for (const Block& block : blocks_)
      if (!block.has_ended()) fail_stuck(block);
    for (auto& [ends, one] : connections_)
      if (!one.messages.empty())
        fail(one.messages.front().from, fmt::format("what is sent to gpu {} is never received", std::get<1>(ends)));
    check_outputs();
  }

 private:
  struct Block {
    const ThreadBlock* code;
    std::uint32_t gpu;
    std::uint32_t next;                   // step
    Clock clock;                          // as the next step begins
    std::map<std::uint32_t, Clock> told;  // as its steps ended for which others wait
    bool has_ended() const { return next == code->steps.size(); }
    const Step& step() const { return code->steps[next]; }
  };

  std::string text(StepId id) const {
    const Block& block = blocks_[id.block];
    return fmt::format("gpu {}, tb {}, step {}", block.gpu, block.code->id, id.step);
  }
  [[noreturn]] void fail(StepId id, const std::string& what) const {
    const Step& step = blocks_[id.block].code->steps[id.step];
    throw core::InputError(fmt::format("{} ({}){}: {}", text(id), name_of(step.kind),
                                       in_place_ && algorithm_.out_of_place ? ", in place" : "", what),
                           name_, step.line);
  }

  Connection& connection(std::uint32_t from, std::uint32_t to, std::int32_t channel) {
    return connections_[{from, to, channel}];
  }
  Connection& outgoing(const Block& block) {
    return connection(block.gpu, static_cast<std::uint32_t>(block.code->send), block.code->channel);
  }
  Connection& incoming(const Block& block) {
    return connection(static_cast<std::uint32_t>(block.code->receive), block.gpu, block.code->channel);
  }
  Block& awaited(const Block& block) {
    return blocks_[first_block_[block.gpu] + static_cast<std::uint32_t>(block.step().wait_block)];
  }

  bool waits(const Block& block) {
    return block.step().wait_block >= 0 && awaited(block).next <= static_cast<std::uint32_t>(block.step().wait_step);
  }
  bool can_run(const Block& block) {
    if (block.has_ended() || waits(block)) return false;
    if (block.step().receives() && incoming(block).messages.empty()) return false;
    return !block.step().sends() || std::ssize(outgoing(block).messages) < slots_of(algorithm_.protocol);
  }

  static void join(Clock& to, const Clock& other) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], other[i]);
  }

  void run_step(std::uint32_t number) {
    Block& block = blocks_[number];
    const Step& step = block.step();
    const StepId id{number, block.next};
    if (step.wait_block >= 0 && races_)
      join(block.clock, awaited(block).told.at(static_cast<std::uint32_t>(step.wait_step)));
    std::vector<Value> values;
    if (step.receives()) values = received(id, block, step);
    for (std::int64_t i = 0; step.reads_source() && i < step.count; ++i) {
      const Value read = read_at(id, step.source, i);
      if (step.receives())
        values[static_cast<std::size_t>(i)] = sum(id, values[static_cast<std::size_t>(i)], read);
      else
        values.push_back(step.kind == StepKind::reduce ? sum(id, read, read_at(id, step.destination, i)) : read);
    }
    for (std::int64_t i = 0; step.writes() && i < step.count; ++i)
      write_at(id, step.destination, i, values[static_cast<std::size_t>(i)]);
    ++block.next;
    if (races_) {
      block.clock[number] = block.next;
      if (step.is_waited_for) block.told[id.step] = block.clock;
    }
    if (step.sends()) outgoing(block).messages.push_back({std::move(values), block.clock, id});
  }

  std::vector<Value> received(StepId id, Block& block, const Step& step) {
    Connection& from = incoming(block);
    Message message = std::move(from.messages.front());
    from.messages.pop_front();
    if (std::ssize(message.values) != step.count)
      fail(id,
           fmt::format("receives {} chunks, and {} sends {}", step.count, text(message.from), message.values.size()));
    if (races_) join(block.clock, message.clock);
    return std::move(message.values);
  }

  bool is_before(const StepId& other, const StepId& id) const {
    return !races_ || other.block == id.block || blocks_[id.block].clock[other.block] > other.step;
  }

  std::string chunk_text(const Place& place, std::int64_t index) const {
    constexpr std::array kNames{"input", "output", "scratch"};
    return fmt::format("chunk {} of its {}", place.offset + index, kNames.at(static_cast<std::size_t>(place.buffer)));
  }

  Value read_at(StepId id, const Place& place, std::int64_t index) {
    Cell& cell = memory_.at(blocks_[id.block].gpu, place, index);
    if (!cell.value) fail(id, fmt::format("reads {}, which nothing has written", chunk_text(place, index)));
    if (cell.writer && !is_before(*cell.writer, id))
      fail(id, fmt::format("reads {} without waiting for {}, which writes it", chunk_text(place, index),
                           text(*cell.writer)));
    const auto last = std::find_if(cell.readers.begin(), cell.readers.end(),
                                   [&](const StepId& one) { return one.block == id.block; });
    last == cell.readers.end() ? cell.readers.push_back(id) : void(*last = id);
    return cell.value;
  }

  void write_at(StepId id, const Place& place, std::int64_t index, Value value) {
    Cell& cell = memory_.at(blocks_[id.block].gpu, place, index);
    if (cell.writer && !is_before(*cell.writer, id))
      fail(id, fmt::format("writes {} without waiting for {}, which writes it", chunk_text(place, index),
                           text(*cell.writer)));
    for (const StepId& reader : cell.readers)
      if (!is_before(reader, id))
        fail(id,
             fmt::format("writes {} without waiting for {}, which reads it", chunk_text(place, index), text(reader)));
    cell = {std::move(value), id, {}};
  }

  Value sum(StepId id, const Value& one, const Value& other) const {
    if (one->chunk != other->chunk) fail(id, fmt::format("adds {} to {}", text_of(*one), text_of(*other)));
    auto result = std::make_shared<Contributions>();
    result->chunk = one->chunk;
    std::set_union(one->gpus.begin(), one->gpus.end(), other->gpus.begin(), other->gpus.end(),
                   std::back_inserter(result->gpus));
    if (result->gpus.size() < one->gpus.size() + other->gpus.size())
      fail(id, fmt::format("adds {} to {}: a contribution counts twice", text_of(*one), text_of(*other)));
    return result;
  }

  /// Says what the next step of a thread block waits for, and of which other block that has to be a step: kNone where
  /// no step of it is left.
  std::pair<std::string, std::uint32_t> obstacle(const Block& block) {
    const auto of = [&](std::uint32_t number) {
      return number == kNone || blocks_[number].has_ended() ? kNone : number;
    };
    if (waits(block))
      return {fmt::format("waits for step {}", block.step().wait_step),
              static_cast<std::uint32_t>(&awaited(block) - blocks_.data())};
    if (block.step().receives() && incoming(block).messages.empty())
      return {fmt::format("receives from gpu {} on channel {}", block.code->receive, block.code->channel),
              of(incoming(block).sender)};
    return {fmt::format("sends to gpu {} on channel {}", block.code->send, block.code->channel),
            of(outgoing(block).receiver)};
  }

  [[noreturn]] void fail_stuck(const Block& first) {
    std::vector<std::uint32_t> way{static_cast<std::uint32_t>(&first - blocks_.data())};
    for (;;) {
      const Block& block = blocks_[way.back()];
      const auto [what, next] = obstacle(block);
      const StepId id{way.back(), block.next};
      if (next == kNone)
        fail(id,
             fmt::format("{}, which {} nothing more there", what, what.starts_with("sends") ? "receives" : "sends"));
      const auto known = std::find(way.begin(), way.end(), next);
      if (known != way.end()) {
        way.erase(way.begin(), known);
        break;
      }
      way.push_back(next);
    }
    std::rotate(way.begin(), std::min_element(way.begin(), way.end()), way.end());
    std::vector<std::string> circle;
    for (const std::uint32_t number : way) {
      if (circle.size() == kMaxShown) break;
      const StepId id{number, blocks_[number].next};
      circle.push_back(fmt::format("{}{}", circle.empty() ? "" : text(id) + " ", obstacle(blocks_[number]).first));
    }
    if (way.size() > kMaxShown) circle.push_back(fmt::format("and {} more", way.size() - kMaxShown));
    fail({way.front(), blocks_[way.front()].next}, fmt::format("waits in a circle: it {}", fmt::join(circle, "; ")));
  }

  void check_outputs() {
    for (std::size_t gpu = 0; gpu < algorithm_.gpus.size(); ++gpu)
      for (std::int64_t chunk = 0; chunk < algorithm_.output_chunks(); ++chunk) {
        const Cell& cell = memory_.at(gpu, {Buffer::output, 0}, chunk);
        const Contributions wanted = memory_.wanted(gpu, chunk);
        if (cell.value && *cell.value == wanted) continue;
        const std::string what =
            fmt::format("ends with {} in chunk {} of the output of gpu {}, where {} is right",
                        cell.value ? text_of(*cell.value) : "nothing", chunk, gpu, text_of(wanted));
        if (cell.writer) fail(*cell.writer, what);
        throw core::InputError(fmt::format("{}: {}", core::collective::name_of(algorithm_.kind), what), name_,
                               algorithm_.line);
      }
  }

  const Algorithm& algorithm_;
  const std::string& name_;
  const bool in_place_, races_;
  SymbolicMemory memory_;
  std::vector<Block> blocks_;               // of all GPUs
  std::vector<std::uint32_t> first_block_;  // by GPU
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, Connection> connections_;
};

}  // namespace

Checked check_algorithm(const Algorithm& algorithm, const std::string& name) {
  std::int64_t blocks = 0, steps = 0;
  for (const Gpu& gpu : algorithm.gpus)
    for (const ThreadBlock& block : gpu.blocks) ++blocks, steps += std::ssize(block.steps);
  const Checked checked{blocks * steps <= kMaxClockWork};
  for (const bool in_place : {false, true})
    if (in_place ? algorithm.in_place : algorithm.out_of_place)
      SymbolicRun(algorithm, name, in_place, checked.races).run();
  return checked;
}

}  // namespace manyworlds::experiments::msccl
