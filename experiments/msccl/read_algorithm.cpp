#include "experiments/msccl/read_algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/graphs/graph_programs.hpp"
#include "experiments/msccl/algorithm.hpp"
#include "experiments/msccl/check_algorithm.hpp"
#include "experiments/msccl/given_algorithms.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::msccl {
namespace {

using core::collective::Loops;

constexpr std::size_t kMaxBytes = 8u << 20;
constexpr std::int64_t kMaxOperations = 20'000'000, kOperationsOfStep = 3;

/// Returns the bytes on the wire of so much data, flags included.
std::int64_t wire_bytes(Protocol protocol, std::int64_t data) {
  return core::collective::line_format_costs(protocol_of(protocol)).wire_bytes(data);
}

/// The latest operations of streams: of a stream, all before have ended when the latest has.
using Ends = std::map<std::uint32_t, std::uint32_t>;

void join(Ends& to, const Ends& other) {
  for (const auto& [stream, op] : other) {
    const auto [known, is_new] = to.try_emplace(stream, op);
    if (!is_new) known->second = std::max(known->second, op);
  }
}

/// Writes the program of one GPU: a stream for what each thread block sends, one for what it receives, one for its
/// copies and reductions.
class ProgramWriter {
 public:
  ProgramWriter(const Algorithm& algorithm, std::uint32_t gpu, graphs::GraphPrograms& job)
      : algorithm_(algorithm), gpu_(algorithm.gpus[gpu]), blocks_(gpu_.blocks.size()), job_(job) {}

  /// Adds a loop in which chunks have `bytes`. Steps are written in an order in which each comes after those that it
  /// waits for, which a checked algorithm has.
  void add_loop(std::int64_t bytes) {
    for (Block& block : blocks_) block.next = 0, block.steps.assign(block.steps.size(), {});
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t number = 0; number < blocks_.size(); ++number) {
        const ThreadBlock& code = gpu_.blocks[number];
        Block& block = blocks_[number];
        block.steps.resize(code.steps.size());
        while (block.next < code.steps.size() && !waits(code.steps[block.next]))
          add_step(number, code.steps[block.next], bytes), ++block.next, moves = true;
      }
    }
  }

  void finish(std::uint32_t rank, const std::string& what) {
    program_.name = fmt::format("gpu {}", rank);
    job_.add(rank, std::move(program_), calls_, what);
  }

 private:
  struct Block {
    std::size_t next = 0;
    Ends ended;               // with the step before
    std::vector<Ends> steps;  // of this loop, by step, of those that others wait for
    std::deque<Ends> freed;   // of the latest receives, one for each slot: when it is free again
    std::map<char, std::uint32_t> streams;
  };

  bool waits(const Step& step) const {
    return step.wait_block >= 0 &&
           blocks_[static_cast<std::size_t>(step.wait_block)].next <= static_cast<std::size_t>(step.wait_step);
  }

  std::uint32_t stream(std::size_t block, char sort) {
    const auto [known, is_new] =
        blocks_[block].streams.try_emplace(sort, static_cast<std::uint32_t>(program_.streams.size()));
    if (is_new)
      program_.streams.push_back({fmt::format("tb {}{}", gpu_.blocks[block].id,
                                              sort == 's'   ? " sends"
                                              : sort == 'r' ? " receives"
                                                            : ""),
                                  programs::StreamKind::device});
    return known->second;
  }

  /// Adds an operation that waits for `after`, and returns that it has ended.
  Ends add(std::uint32_t stream, const char* name, const Ends& after) {
    programs::StreamOp op;
    op.stream = stream;
    op.name = job_.number_of(name);
    for (const auto& [other, before] : after)
      if (other != stream) op.after.push_back(before);
    std::sort(op.after.begin(), op.after.end());
    program_.ops.push_back(std::move(op));
    return {{stream, static_cast<std::uint32_t>(program_.ops.size() - 1)}};
  }

  Ends add_transfer(std::size_t block, bool receives, std::int64_t bytes, const Ends& after) {
    const ThreadBlock& code = gpu_.blocks[block];
    const Ends end = add(stream(block, receives ? 'r' : 's'), receives ? "receive" : "send", after);
    calls_.push_back(
        {end.begin()->second,
         graphs::Transfer{static_cast<std::uint32_t>(receives ? code.receive : code.send), receives,
                          wire_bytes(algorithm_.protocol, bytes), static_cast<std::uint64_t>(code.channel)}});
    return end;
  }

  /// A copy reads and writes its bytes; a reduction reads two and writes one, as a copy of one and a half does.
  Ends add_work(std::size_t block, bool reduces, std::int64_t bytes, const Ends& after) {
    const Ends end = add(stream(block, 'w'), reduces ? "reduce" : "copy", after);
    program_.ops.back().work = programs::CopyWork{programs::CopyDirection::device_to_device,
                                                  reduces ? (3 * bytes + 1) / 2 : bytes, std::nullopt};
    return end;
  }

  void add_step(std::size_t number, const Step& step, std::int64_t chunk_bytes) {
    Block& block = blocks_[number];
    const std::int64_t bytes = step.count * chunk_bytes;
    Ends ready = block.ended;
    if (step.wait_block >= 0)
      join(ready, blocks_[static_cast<std::size_t>(step.wait_block)].steps[static_cast<std::size_t>(step.wait_step)]);
    if (step.receives()) {
      // It may arrive as soon as there is a slot; the thread block takes it when it comes to the step.
      const auto slots = static_cast<std::size_t>(slots_of(algorithm_.protocol));
      Ends slot;
      if (block.freed.size() == slots) {
        slot = std::move(block.freed.front());
        block.freed.pop_front();
      }
      join(ready, add_transfer(number, true, bytes, slot));
    }
    if (step.kind == StepKind::copy || step.reduces()) ready = add_work(number, step.reduces(), bytes, ready);
    if (step.receives() && step.kind != StepKind::receive_copy_send) block.freed.push_back(ready);
    if (step.sends()) ready = add_transfer(number, false, bytes, ready);
    if (step.kind == StepKind::receive_copy_send) block.freed.push_back(ready);
    block.ended = std::move(ready);
    if (step.is_waited_for) block.steps[block.next] = block.ended;
  }

  const Algorithm& algorithm_;
  const Gpu& gpu_;
  std::vector<Block> blocks_;
  graphs::GraphPrograms& job_;
  programs::RankProgram program_;
  std::vector<graphs::CommunicatingOp> calls_;
};

Loops checked_loops(const Algorithm& algorithm, const std::string& name, std::int64_t bytes) {
  const char* kind = core::collective::name_of(algorithm.kind);
  if (bytes <= 0) throw core::InputError(fmt::format("is for any size: give that of its {} by --bytes", kind), name);
  if (bytes % algorithm.chunks != 0)
    throw core::InputError(
        fmt::format("divides its {} into {} chunks (nchunksperloop), and --bytes {} is no multiple of that; {} is",
                    kind, algorithm.chunks, bytes, (bytes / algorithm.chunks + 1) * algorithm.chunks),
        name, algorithm.line);
  const Loops loops = core::collective::loops_of(bytes / algorithm.chunks, loop_bytes(algorithm.protocol));
  std::int64_t steps = 0;
  for (const Gpu& gpu : algorithm.gpus)
    for (const ThreadBlock& block : gpu.blocks) steps += std::ssize(block.steps);
  if (steps > 0 && loops.count > kMaxOperations / kOperationsOfStep / steps)
    throw core::InputError(fmt::format("has {} steps in each of {} loops, which are more than {} operations; give "
                                       "fewer bytes",
                                       steps, loops.count, kMaxOperations),
                           name);
  return loops;
}

std::string protocol_note(Protocol protocol) {
  if (protocol == Protocol::simple) return "";
  return fmt::format("; the flags of {} are in the bytes of transfers", name_of(protocol));
}

void tell(const Algorithm& algorithm, const Loops& loops, const Checked& checked, std::int64_t bytes,
          programs::Imported& to) {
  to.programs.notes = {
      fmt::format("a transfer begins when its sender has come to it and the receiver has one of {} slots free, and a "
                  "thread block goes on when what it sends has arrived{}",
                  slots_of(algorithm.protocol), protocol_note(algorithm.protocol)),
      "a copy moves twice its bytes at the GPU's memory bandwidth, a reduction three times; receives store as data "
      "arrive",
      "the network's latency is all that a step takes besides: collectives.protocol other than none adds a library's "
      "costs to each transfer"};
  std::int64_t blocks = 0, most_blocks = 0;
  for (const Gpu& gpu : algorithm.gpus)
    blocks += std::ssize(gpu.blocks), most_blocks = std::max<std::int64_t>(most_blocks, std::ssize(gpu.blocks));
  to.account.push_back(fmt::format(
      "{} of {} bytes on {} GPUs, protocol {}, {} thread blocks, up to {} on a GPU; chunks of {} bytes in {} loop{}",
      core::collective::name_of(algorithm.kind), bytes, algorithm.gpus.size(), name_of(algorithm.protocol), blocks,
      most_blocks, bytes / algorithm.chunks, loops.count, loops.count == 1 ? "" : "s"));
  to.account.push_back(fmt::format(
      "a symbolic run {} ends with what the collective demands on every GPU{}",
      algorithm.in_place && algorithm.out_of_place ? "in place and out of place"
      : algorithm.in_place                         ? "in place"
                                                   : "out of place",
      checked.races ? "" : "; whether thread blocks wait where they must was not checked, as there are too many"));
  if (algorithm.max_bytes > 0 && (bytes < algorithm.min_bytes || bytes > algorithm.max_bytes))
    to.account.push_back(fmt::format("it is meant for {} to {} bytes: MSCCL would not choose it", algorithm.min_bytes,
                                     algorithm.max_bytes));
}

}  // namespace

programs::Imported import_algorithm(std::string_view text, const std::string& name, const AlgorithmOptions& options) {
  const Algorithm algorithm = parse_algorithm(text, name);
  const Loops loops = checked_loops(algorithm, name, options.bytes);
  const Checked checked = check_algorithm(algorithm, name);
  const auto ranks = static_cast<std::uint32_t>(algorithm.gpus.size());
  graphs::GraphPrograms job(ranks, {}, {});
  for (std::uint32_t gpu = 0; gpu < ranks; ++gpu) {
    ProgramWriter writer(algorithm, gpu, job);
    for (std::int64_t loop = 0; loop < loops.count; ++loop)
      writer.add_loop(loop + 1 < loops.count ? loops.most : loops.last);
    writer.finish(gpu, name);
  }
  programs::Imported result = job.finish(name);
  result.programs.name = algorithm.name;
  result.programs.origin = fmt::format("MSCCL algorithm {}", name);
  tell(algorithm, loops, checked, options.bytes, result);
  return result;
}

programs::Imported read_algorithm(const std::string& path, const AlgorithmOptions& options) {
  return import_algorithm(import::read_table_text(path, kMaxBytes), path, options);
}

}  // namespace manyworlds::experiments::msccl
