#include "experiments/simai/collectives_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/base/error.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::simai {
namespace {

using core::InputError;
using core::collective::Kind;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr double kMaxNs = 1e15;
constexpr std::string_view kBlanks = " \t\r", kBlanksAndCommas = " \t\r,";

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};
constexpr std::array<Named<Kind>, 8> kCollectives{{{"all_reduce", Kind::all_reduce},
                                                   {"all_gather", Kind::all_gather},
                                                   {"all_gather_into_tensor", Kind::all_gather},
                                                   {"reduce_scatter", Kind::reduce_scatter},
                                                   {"reduce_scatter_tensor", Kind::reduce_scatter},
                                                   {"all_to_all", Kind::all_to_all},
                                                   {"broadcast", Kind::broadcast},
                                                   {"reduce", Kind::reduce}}};
constexpr std::array<Named<GroupKind>, 9> kGroups{{{"tp_group", GroupKind::tensor},
                                                   {"dp_group", GroupKind::data},
                                                   {"pp_group", GroupKind::pipeline},
                                                   {"ep_group", GroupKind::expert},
                                                   {"ep_dp_group", GroupKind::expert_data},
                                                   {"ep_tp_group", GroupKind::expert_tensor},
                                                   {"embedding_group", GroupKind::embedding},
                                                   {"all_nodes", GroupKind::all},
                                                   {"all", GroupKind::all}}};

template <class Value, std::size_t n>
std::optional<Value> find(const std::array<Named<Value>, n>& names, std::string_view name) {
  for (const auto& one : names)
    if (one.name == name) return one.value;
  return std::nullopt;
}

/// Splits at commas outside of brackets, as msg_size may be two shapes.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && (line[i] == '(' || line[i] == '[')) ++depth;
    if (i < line.size() && (line[i] == ')' || line[i] == ']')) --depth;
    if (i < line.size() && (line[i] != ',' || depth > 0)) continue;
    fields.push_back(import::trimmed(line.substr(begin, i - begin), kBlanks));
    begin = i + 1;
  }
  return fields;
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  std::vector<Section> read(std::string_view text) {
    import::check_text(text, name_);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = import::trimmed(text.substr(0, end), kBlanks);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (line.empty()) continue;
      if (line.front() == '[')
        section(line);
      else if (line.starts_with("comm_type,"))
        header(line);
      else
        row(line);
    }
    finish();
    if (sections_.empty()) throw InputError("has no operation of an epoch", name_);
    return std::move(sections_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, name_, line_); }

  void section(std::string_view line) {
    finish();
    std::vector<std::uint32_t>& ranks = current_.ranks;
    for (std::size_t at = line.find("rank"); at != line.npos; at = line.find("rank", at)) {
      at += 4;
      std::uint32_t rank = 0;
      const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), rank);
      if (error != std::errc() || rank >= programs::kMaxRanks)
        fail(fmt::format("a section lists ranks below {} as 'rank0, rank1' or 'rank0 ~ rank7'", programs::kMaxRanks));
      const std::string_view before = import::trimmed(line.substr(0, at - 4), kBlanks);
      if (before.ends_with('~') && !ranks.empty() && rank > ranks.back()) {
        for (std::uint32_t next = ranks.back() + 1; next < rank; ++next) ranks.push_back(next);
      }
      ranks.push_back(rank);
    }
    if (ranks.empty()) fail("a section lists its ranks, as '[rank0 ~ rank127]'");
    is_ranked_ = true;
  }

  void header(std::string_view line) {
    columns_.clear();
    for (const std::string_view name : fields_of(line)) columns_.emplace(name, columns_.size());
    fields_ = columns_.size();
    for (const char* needed : {"comm_group", "msg_size"})
      if (columns_.count(needed) == 0) fail(fmt::format("the table has no column '{}'", needed));
  }

  std::string_view field(const std::vector<std::string_view>& fields, const char* column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::string_view() : fields[found->second];
  }

  void row(std::string_view line) {
    if (columns_.empty()) fail("a row stands before the columns, which begin with 'comm_type,comm_group'");
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() != fields_) fail(fmt::format("has {} fields, and the table {} columns", fields.size(), fields_));
    Row row;
    row.line = line_;
    row.stage = field(fields, "stage");
    std::string_view type = fields[0];
    if (type.starts_with("CommType.")) type.remove_prefix(9);
    if (type == "epoch_end") return epoch();
    if (type == "computation") {
      row.kind = RowKind::computation;
      computation(fields, row);
    } else {
      communication(type, fields, row);
    }
    current_.rows.push_back(std::move(row));
  }

  void communication(std::string_view type, const std::vector<std::string_view>& fields, Row& row) const {
    std::string_view group = field(fields, "comm_group");
    if (group.starts_with("CommGroup.")) group.remove_prefix(10);
    row.group = find(kGroups, group);
    if (!row.group)
      fail(
          fmt::format("'{}' is no group of ranks; known are tp_group, dp_group, pp_group, ep_group, ep_dp_group, "
                      "ep_tp_group, embedding_group and all",
                      group));
    const std::string_view size = field(fields, "comm_group_size");
    if (!size.empty() && size != "None" && size != "-1")
      row.group_size = static_cast<std::uint32_t>(whole(size, "comm_group_size", 1, programs::kMaxRanks));
    if (type == "barrier") {
      row.kind = RowKind::barrier;
      row.bytes = 4;
      return;
    }
    row.bytes = whole(field(fields, "msg_size"), "msg_size", 0, kMaxBytes);
    if (type == "isend" || type == "irecv") return transfer(type == "irecv", field(fields, "additional"), row);
    const std::optional<Kind> kind = find(kCollectives, type);
    if (!kind)
      fail(
          fmt::format("'{}' is no operation of AICB; known are all_reduce, all_gather, reduce_scatter, all_to_all, "
                      "broadcast, reduce, barrier, isend, irecv, computation and epoch_end",
                      type));
    row.collective = *kind;
  }

  void transfer(bool receives, std::string_view to, Row& row) const {
    if (*row.group != GroupKind::pipeline) fail("transfers are of pp_group");
    row.kind = RowKind::transfer;
    row.receives = receives;
    row.group_size = 0;  // AICB writes 1
    if (to != (receives ? "recv_prev" : "send_prev") && to != (receives ? "recv_next" : "send_next"))
      fail(fmt::format("'additional' of {} must be {}, not '{}'", receives ? "irecv" : "isend",
                       receives ? "recv_prev or recv_next" : "send_prev or send_next", to));
    row.is_to_next = receives == to.ends_with("prev");
  }

  void computation(const std::vector<std::string_view>& fields, Row& row) const {
    const std::string_view elapsed = field(fields, "_elapsed_time");
    double ns = 0;
    const auto [end, error] = std::from_chars(elapsed.data(), elapsed.data() + elapsed.size(), ns);
    if (error == std::errc() && end == elapsed.data() + elapsed.size() && elapsed != "-1") {
      if (!(ns >= 0 && ns <= kMaxNs)) fail(fmt::format("'_elapsed_time' must be from 0 to 1e15 ns, not '{}'", elapsed));
      row.us = ns * 1e-3;
      return;
    }
    row.product = product_of(field(fields, "msg_size"));
  }

  /// Reads "((m, k), (k, n))", with more extents before m as a batch. AICB writes blanks for its commas in a CSV.
  programs::GemmShape product_of(std::string_view text) const {
    std::vector<std::vector<std::int64_t>> shapes;
    std::string_view inside = text.size() > 2 ? text.substr(1, text.size() - 2) : std::string_view();
    while (!(inside = import::trimmed(inside, kBlanksAndCommas)).empty()) {
      const std::size_t end = inside.find_first_of(")]");
      if ((inside.front() != '(' && inside.front() != '[') || end == inside.npos) break;
      std::vector<std::int64_t>& extents = shapes.emplace_back();
      std::string_view shape = inside.substr(1, end - 1);
      while (!(shape = import::trimmed(shape, kBlanksAndCommas)).empty()) {
        const std::string_view extent = shape.substr(0, shape.find_first_of(kBlanksAndCommas));
        extents.push_back(whole(extent, "an extent of msg_size", 1, 1 << 24));
        shape.remove_prefix(extent.size());
      }
      inside.remove_prefix(end + 1);
    }
    if (shapes.size() != 2 || shapes[0].size() < 2 || shapes[1].size() < 2 || shapes[0].size() > 4 ||
        shapes[0].back() != shapes[1][shapes[1].size() - 2])
      fail(
          fmt::format("computation without '_elapsed_time' needs the shapes of its product in 'msg_size', as "
                      "((4096, 1024), (1024, 512)), not '{}'",
                      text));
    programs::GemmShape shape;
    shape.k = shapes[0].back();
    shape.n = shapes[1].back();
    shape.m = shapes[0][shapes[0].size() - 2];
    std::int64_t above = 1;
    for (std::size_t i = 0; i + 2 < shapes[0].size(); ++i) above *= shapes[0][i];
    if (above > 1 << 24) fail("the batch of a product is above 2^24");
    (shapes[1].size() == 2 ? shape.m : shape.batch) *= above;
    return shape;
  }

  std::int64_t whole(std::string_view text, const char* what, std::int64_t least, std::int64_t most) const {
    std::int64_t value = 0;
    if (text.ends_with(".0")) text.remove_suffix(2);  // as pandas writes integers beside None
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
      fail(fmt::format("'{}' must be an integer from {} to {}, not '{}'", what, least, most, text));
    return value;
  }

  void epoch() {
    if (current_.rows.empty()) return;
    before_ += last_.size();
    for (const Row& row : last_) keep_size(row);
    last_ = std::move(current_.rows);
    current_.rows.clear();
  }

  /// Keeps what a row of an epoch that does not count says of its group: pp_group is in AICB's set-up alone.
  void keep_size(const Row& row) {
    if (!row.group || row.group_size == 0) return;
    const auto says_the_same = [&](const Row& known) {
      return known.group == row.group && known.group_size == row.group_size;
    };
    if (std::none_of(current_.sizes.begin(), current_.sizes.end(), says_the_same)) current_.sizes.push_back(row);
  }

  /// Ends a section: its last epoch counts.
  void finish() {
    current_.has_end = current_.rows.empty();
    epoch();
    if (!last_.empty()) {
      current_.rows = std::move(last_);
      current_.before = before_;
      sections_.push_back(std::move(current_));
    } else if (is_ranked_) {
      fail("a section has no operation");
    }
    current_ = {};
    last_.clear();
    before_ = 0;
    is_ranked_ = false;
  }

  const std::string& name_;
  int line_ = 0;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::size_t fields_ = 0, before_ = 0;
  bool is_ranked_ = false;
  Section current_;
  std::vector<Row> last_;
  std::vector<Section> sections_;
};

}  // namespace

std::vector<Section> parse_sections(std::string_view text, const std::string& name) {
  return Reader(name).read(text);
}

}  // namespace manyworlds::experiments::simai
