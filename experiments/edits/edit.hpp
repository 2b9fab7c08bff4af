// What-if edits of programs: which operations, and what is done to them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::edits {

enum class OpKind : std::uint8_t {
  kernel,
  copy,
  host,
  collective,
  send,
  receive,
  recorded  // only of Hold: any whose beginning was recorded
};

/// Operations of one kind for which all that is given holds. Patterns have * for any text and ? for one character.
struct Selection {
  OpKind kind = OpKind::kernel;
  std::string what = "*";  // pattern of a kernel's or host operation's name, a copy's direction, a collective's kind, a
                           // transfer's dimension
  std::string name = "*", stream = "*";    // patterns
  std::string dimension = "*";             // pattern; of collectives
  std::string part = "*";                  // pattern; of kernels
  std::string gemm;                        // pattern of m,n,k,batch; of matrix products; empty: any kernel
  std::vector<std::uint32_t> ranks;        // empty: all
  std::vector<std::uint32_t> occurrences;  // of what all else selects in a rank's program, from 0; empty: all
  bool is_last = false;                    // the last of them alone
  int line = 0;                            // of the file
  bool operator==(const Selection&) const = default;
};

/// Takes the factors of an operation's time and bytes, and of a kernel's extents: of a matrix product, or the batch of
/// attention.
struct Scale {
  std::optional<double> time, bytes;
  std::optional<double> m, n, k, batch;
  bool has_extents() const { return m || n || k || batch; }
};
/// Takes operations out. What waited for one waits for what it waited for.
struct Drop {};
/// Makes one kernel of those that follow each other on a stream, with the sums of their times and bytes, by a factor.
struct Fuse {
  double time = 1, bytes = 1;
};
/// Gives operations another time, size or shape. A measured time stays that of the shape at which it was measured.
struct Set {
  std::optional<double> us;
  std::optional<std::int64_t> bytes;
  std::optional<programs::GemmShape> gemm;
  std::optional<programs::AttentionShape> attention;
  std::optional<core::compute::Dtype> dtype;
  std::optional<programs::ScalesWith> scales_with;
  bool has_shape() const { return gemm || attention || dtype || scales_with; }
};
/// Puts operations on another stream. They still wait for what came before them; what came after them on their stream
/// does not wait for them any more, but the first operation after each that `before` selects does.
struct Move {
  std::string stream;
  std::optional<Selection> before;
};
/// Adds an operation after each that is selected, or before it; the first one after it that `before` selects waits.
struct Insert {
  nlohmann::json operation;  // a line of the program file
  bool is_before = false;
  std::optional<Selection> before;
};
/// Joins and cuts the collectives of a dimension into some of `bytes`, as DDP joins gradients into buckets.
struct Bucket {
  std::int64_t bytes = 0;
};
/// Changes the tokens that kernels work on by a factor: of matrix products the dimension that is `tokens` long.
struct Batch {
  double factor = 1;
  std::int64_t tokens = 0;
};

/// Holds ranks to their recording: nothing of them begins before it did there, and later only where another rank lets
/// it wait (NeuronaBox, arXiv:2405.02969: one rank as it was, the others emulated).
struct Hold {};

/// Makes the groups of dimensions larger; see widen().
struct Widen {
  std::string dimension;  // pattern
  std::int64_t factor = 1;
};

using Action = std::variant<Scale, Drop, Fuse, Set, Move, Insert, Bucket, Batch, Hold, Widen>;

struct Edit {
  Selection selection;
  Action action;
  int line = 0;
};

/// Edits in the order in which they are made, each on what the one before it left.
struct Edits {
  std::string name;  // of the file, in messages
  std::vector<Edit> edits;
};

/// Returns the word for an action in files and accounts.
const char* name_of(const Action& action);
/// Returns the key of a selection that says its kind, but for OpKind::recorded, which has none.
const char* name_of(OpKind kind);

/// Parses a file of edits (docs/edits.md). Throws core::InputError with file and line for what is none.
Edits parse_edits(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::edits
