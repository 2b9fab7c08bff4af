// A binary schedule: a cookie, the ranks, the largest cpu and nic, where the data of each rank begin and end (behind
// the cookie), and these: nodes, those that nothing precedes, 39 bytes of each node, and the nodes that wait for each.
#include <fmt/format.h>

#include <type_traits>

#include "core/base/error.hpp"
#include "experiments/goal/goal_file.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::goal {
namespace {

using core::InputError;

constexpr std::uint64_t kCookie = 4223, kUsedUp = 2342;
constexpr std::size_t kCookieBytes = 8, kHeadBytes = 6, kJumpBytes = 16, kNodeBytes = 39, kCountBytes = 4;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 50;

/// Reads a number of little-endian bytes, as x86 writes it.
template <class Number>
Number number_at(std::string_view data, std::size_t at) {
  static_assert(std::is_unsigned_v<Number>);
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number = static_cast<Number>(number | Number{static_cast<unsigned char>(data[at + i])} << (8 * i));
  return number;
}

class BinaryReader {
 public:
  BinaryReader(std::string_view data, const std::string& name) : data_(data), name_(name) {}

  GoalFile read() {
    if (data_.size() >= kCookieBytes && number_at<std::uint64_t>(data_, 0) == kUsedUp)
      fail("is a schedule that LogGOPSim has used up (--save-mem); make it again from its text with txt2bin");
    if (!is_goal_binary(data_)) fail("is no binary schedule of GOAL");
    data_.remove_prefix(kCookieBytes);
    if (data_.size() < kHeadBytes) fail("ends before its number of ranks: the file is cut");
    const auto ranks = number_at<std::uint32_t>(data_, 0);
    if (ranks == 0 || ranks > programs::kMaxRanks)
      fail(fmt::format("has {} ranks, where 1 to {} are right", ranks, programs::kMaxRanks));
    if ((data_.size() - kHeadBytes) / kJumpBytes < ranks)
      fail(fmt::format("ends before the places of its {} ranks: the file is cut", ranks));
    file_.ranks.resize(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) read_rank(rank);
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, name_); }
  [[noreturn]] void fail_at(std::uint32_t rank, std::size_t op, const std::string& what) const {
    fail(fmt::format("rank {}, operation {}: {}", rank, op, what));
  }

  void read_rank(std::uint32_t rank) {
    const std::size_t jump = kHeadBytes + rank * kJumpBytes;
    const auto begin = number_at<std::uint64_t>(data_, jump), end = number_at<std::uint64_t>(data_, jump + 8);
    if (begin > end || end > data_.size())
      fail(fmt::format("has rank {} at bytes {} to {} of {}: the file is cut or damaged", rank, begin, end,
                       data_.size()));
    const std::string_view data = data_.substr(begin, end - begin);
    if (data.size() < 2 * kCountBytes) fail(fmt::format("has no counts of rank {}", rank));
    const std::size_t nodes = number_at<std::uint32_t>(data, 0), roots = number_at<std::uint32_t>(data, kCountBytes);
    const std::size_t first = 2 * kCountBytes + roots * kCountBytes;
    if (first > data.size() || (data.size() - first) / kNodeBytes < nodes)
      fail(fmt::format("has {} operations of rank {} in {} bytes: the file is cut or damaged", nodes, rank,
                       data.size()));
    if ((count_ += nodes) > kMaxGoalOps) fail(fmt::format("has more than {} operations", kMaxGoalOps));
    const std::string_view appendix = data.substr(first + nodes * kNodeBytes);
    std::vector<GoalOp>& ops = file_.ranks[rank];
    ops.resize(nodes);
    for (std::size_t op = 0; op < nodes; ++op) {
      const std::string_view node = data.substr(first + op * kNodeBytes, kNodeBytes);
      read_node(rank, op, node);
      read_waiting(rank, op, appendix, number_at<std::uint32_t>(node, 23), number_at<std::uint32_t>(node, 27), false);
      read_waiting(rank, op, appendix, number_at<std::uint32_t>(node, 31), number_at<std::uint32_t>(node, 35), true);
    }
    for (std::size_t op = 0; op < nodes; ++op) {
      const auto said = number_at<std::uint32_t>(data, first + op * kNodeBytes);
      if (said != ops[op].waits.size() + ops[op].starts.size())
        fail_at(rank, op,
                fmt::format("waits for {} operations, and {} are said to let it begin: the file is damaged", said,
                            ops[op].waits.size() + ops[op].starts.size()));
    }
  }

  /// A node: what it waits for (a count), sort, peer, size, tag, cpu, nic, and the places of those that wait for it.
  void read_node(std::uint32_t rank, std::size_t number, std::string_view node) {
    GoalOp& op = file_.ranks[rank][number];
    const auto sort = static_cast<unsigned char>(node[4]);
    if (sort < 1 || sort > 3) fail_at(rank, number, fmt::format("is of sort {}, where 1 to 3 are right", sort));
    op.kind = sort == 1 ? GoalKind::send : sort == 2 ? GoalKind::receive : GoalKind::calculate;
    const auto size = number_at<std::uint64_t>(node, 9);
    if (size > static_cast<std::uint64_t>(kMaxSize))
      fail_at(rank, number, fmt::format("has size {}, where 0 to {} are right", size, kMaxSize));
    op.size = static_cast<std::int64_t>(size);
    op.cpu = static_cast<unsigned char>(node[21]);
    op.nic = static_cast<unsigned char>(node[22]);
    if (op.kind == GoalKind::calculate) return;
    op.peer = number_at<std::uint32_t>(node, 5);
    op.tag = number_at<std::uint32_t>(node, 17);
    if (op.peer >= file_.ranks.size())
      fail_at(rank, number,
              fmt::format("has peer {} of {} ranks; receives of any source are not known here", op.peer,
                          file_.ranks.size()));
  }

  void read_waiting(std::uint32_t rank, std::size_t op, std::string_view appendix, std::size_t count, std::size_t first,
                    bool is_start) {
    if (count == 0) return;
    if ((first + count) * kCountBytes > appendix.size())
      fail_at(rank, op, "lets operations begin that are outside of the file: it is cut or damaged");
    std::vector<GoalOp>& ops = file_.ranks[rank];
    for (std::size_t i = first; i < first + count; ++i) {
      const auto waiting = number_at<std::uint32_t>(appendix, i * kCountBytes);
      if (waiting >= ops.size()) fail_at(rank, op, fmt::format("lets operation {} begin, of {}", waiting, ops.size()));
      (is_start ? ops[waiting].starts : ops[waiting].waits).push_back(static_cast<std::uint32_t>(op));
    }
  }

  std::string_view data_;
  const std::string& name_;
  GoalFile file_;
  std::size_t count_ = 0;
};

}  // namespace

bool is_goal_binary(std::string_view data) {
  if (data.size() < kCookieBytes) return false;
  const auto cookie = number_at<std::uint64_t>(data, 0);
  return cookie == kCookie || cookie == kUsedUp;
}

GoalFile parse_goal_binary(std::string_view data, const std::string& name) {
  return BinaryReader(data, name).read();
}

}  // namespace manyworlds::experiments::goal
