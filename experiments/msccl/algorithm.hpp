// An algorithm of MSCCL as its XML has it (Cowan et al., "MSCCLang: Microsoft Collective Communication Language",
// ASPLOS 2023; the format of microsoft/msccl-tools, msccl/language/ir.py, with steps): on each GPU, thread blocks that
// run steps in order, each of which sends to one GPU and receives from one over a channel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"

namespace manyworlds::experiments::msccl {

enum class StepKind : std::uint8_t {
  send,
  receive,
  receive_copy_send,
  receive_reduce_send,
  receive_reduce_copy,
  receive_reduce_copy_send,
  copy,
  reduce,
  nop
};

enum class Buffer : std::uint8_t { input, output, scratch };
inline constexpr std::size_t kBuffers = 3;

/// Chunks of a buffer of the step's own GPU, from `offset` on.
struct Place {
  Buffer buffer = Buffer::input;
  std::int64_t offset = 0;
};

struct Step {
  StepKind kind = StepKind::nop;
  Place source, destination;
  std::int64_t count = 0;                       // of chunks
  std::int32_t wait_block = -1, wait_step = 0;  // waits for a step of another thread block of the GPU; -1: for none
  bool is_waited_for = false;
  int line = 0;

  bool receives() const { return kind >= StepKind::receive && kind <= StepKind::receive_reduce_copy_send; }
  bool sends() const {
    return kind == StepKind::send || kind == StepKind::receive_copy_send || kind == StepKind::receive_reduce_send ||
           kind == StepKind::receive_reduce_copy_send;
  }
  bool reads_source() const { return kind != StepKind::nop && kind != StepKind::receive && !forwards(); }
  bool writes() const {
    return kind == StepKind::receive || forwards() || kind == StepKind::receive_reduce_copy ||
           kind == StepKind::receive_reduce_copy_send || kind == StepKind::copy || kind == StepKind::reduce;
  }
  bool reduces() const {
    return kind == StepKind::receive_reduce_send || kind == StepKind::receive_reduce_copy ||
           kind == StepKind::receive_reduce_copy_send || kind == StepKind::reduce;
  }

 private:
  bool forwards() const { return kind == StepKind::receive_copy_send; }
};

struct ThreadBlock {
  std::int64_t id = 0;
  std::int32_t send = -1, receive = -1;  // GPUs; -1: none
  std::int32_t channel = 0;
  std::vector<Step> steps;
  int line = 0;
};

struct Gpu {
  std::int64_t scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;  // Step::wait_block is an index here
};

enum class Protocol : std::uint8_t { simple, ll, ll128 };

struct Algorithm {
  std::string name;
  Protocol protocol = Protocol::simple;
  core::collective::Kind kind = core::collective::Kind::all_reduce;  // or all_gather, reduce_scatter, all_to_all
  std::int64_t chunks = 1;  // nchunksperloop: of all that Kind means by an operation's bytes
  bool in_place = false, out_of_place = true;
  std::int64_t min_bytes = 0, max_bytes = 0;  // for which it is meant; 0 at most: for any
  std::vector<Gpu> gpus;
  int line = 0;

  /// Returns the chunks of a GPU's input and output.
  std::int64_t input_chunks() const;
  std::int64_t output_chunks() const;
};

const char* name_of(StepKind kind);
const char* name_of(Protocol protocol);
const char* name_of(Buffer buffer);

/// Returns how many transfers of a connection may be under way or wait at the receiver: the steps of NCCL's buffer
/// (NCCL_STEPS, 8) over those that a transfer takes, four with Simple.
std::int64_t slots_of(Protocol protocol);

/// Returns whether a text begins as an algorithm does.
bool is_algorithm_file(std::string_view text);

/// Parses an algorithm; `name` is its name in messages. Throws InputError with the line for what is no XML, for
/// elements and attributes that are missing, unknown or out of range, for GPUs, thread blocks and steps that are not
/// numbered as they stand, for steps that send or receive where their thread block does not, and for waits for steps
/// that there are not, or whose hasdep is 0.
Algorithm parse_algorithm(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::msccl
