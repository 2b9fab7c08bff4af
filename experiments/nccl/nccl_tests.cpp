#include "experiments/nccl/nccl_tests.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "experiments/text/lines.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr std::size_t kMaxRows = 100'000, kMaxRanks = 1 << 20;
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kOperations[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast",
                                            "reduce",     "sendrecv",   "gather",         "scatter",  "hypercube"};
using Words = std::vector<std::string_view>;

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns a line without what launchers put before it: "[1,0]<stdout>: " of mpirun, "0: " of srun.
std::string_view without_label(std::string_view line) {
  if (line.starts_with('['))
    if (const std::size_t end = line.find("<std"); end != std::string_view::npos)
      if (const std::size_t colon = line.find(':', end); colon != std::string_view::npos) line.remove_prefix(colon + 1);
  const std::size_t digits = line.find_first_not_of(" 0123456789");
  if (digits != std::string_view::npos && digits > 0 && line[digits] == ':') line.remove_prefix(digits + 1);
  return line;
}

/// Returns the words of a line if it is the header of a table, without its '#'.
std::optional<Words> header_of(std::string_view line) {
  line = without_label(line);
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  if (!line.starts_with('#')) return std::nullopt;
  Words words = words_of(line.substr(1), kBlanks);
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (words.empty() || words.front() != "size" || !has("count") || !has("type") || !has("time") || !has("algbw"))
    return std::nullopt;
  return words;
}

/// Returns the operation of the last word such as build/all_reduce_perf, or nothing.
std::string operation_named_in(std::string_view line) {
  constexpr std::string_view kSuffix = "_perf";
  for (std::size_t at = line.rfind(kSuffix); at != std::string_view::npos && at > 0; at = line.rfind(kSuffix, at - 1)) {
    std::size_t begin = at;
    while (begin > 0 && ((line[begin - 1] >= 'a' && line[begin - 1] <= 'z') || line[begin - 1] == '_')) --begin;
    const std::string_view name = line.substr(begin, at - begin);
    if (std::find(std::begin(kOperations), std::end(kOperations), name) != std::end(kOperations))
      return std::string(name);
  }
  return {};
}

std::int64_t bytes_of_type(std::string_view type) {
  if (type == "half" || type == "bfloat16") return 2;
  if (type == "float" || type == "int32" || type == "uint32") return 4;
  return type == "double" || type == "int64" || type == "uint64" ? 8 : 1;
}

/// One table while it is read.
struct Table {
  int line = 0;  // of its header
  std::vector<std::string> columns;
  std::vector<std::pair<int, std::vector<std::string>>> rows;  // line and fields

  /// Returns a row's field in the n-th column of that name; empty if there is none.
  std::string_view field(std::size_t row, std::string_view column, int n = 0) const {
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i] == column && n-- == 0) return rows[row].second[i];
    return {};
  }
};

/// The ranks that a test lists before its table.
struct Devices {
  std::int64_t ranks = 0;
  std::set<std::string, std::less<>> hosts, groups;
  std::string first;
};

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  std::vector<NcclTestRow> read(std::string_view text) {
    for_each_line(text, [&](std::string_view line, int number) { read_line(without_label(line), number); });
    end_table();
    if (result_.empty()) throw InputError("has the header of an nccl-tests table and no row of it", file_, line_);
    return std::move(result_);
  }

 private:
  void read_line(std::string_view line, int number) {
    if (const auto header = header_of(line)) {
      end_table();
      table_ = Table{number, {header->begin(), header->end()}, {}};
      line_ = number;
      return;
    }
    const Words words = words_of(line, kBlanks);
    if (words.empty()) return;
    if (table_ && is_digits(words.front())) return read_row(words, number);
    if (words.front().starts_with('#'))
      read_comment(words, line);
    else if (const std::string named = operation_named_in(line); !named.empty())
      operation_ = named;
    if (line.find("NCCL version ") != std::string_view::npos) read_version(words);
  }

  void read_row(const Words& words, int number) {
    if (++rows_ > kMaxRows) throw InputError(fmt::format("more than {} rows", kMaxRows), file_, number);
    std::vector<std::string> fields(words.begin(), words.end());
    if (fields.size() != table_->columns.size()) fields.assign(table_->columns.size(), "");  // torn: it says nothing
    table_->rows.emplace_back(number, std::move(fields));
  }

  /// Lines with '#': the ranks, the version, the name of the test, the end of a table.
  void read_comment(const Words& words, std::string_view line) {
    const auto starts = [&](std::initializer_list<std::string_view> expected) {
      return words.size() >= expected.size() && std::equal(expected.begin(), expected.end(), words.begin());
    };
    if (starts({"#", "Out", "of", "bounds"}) || starts({"#", "Avg", "bus"})) return end_table();
    if (starts({"#", "nThread"}) || starts({"#", "Using", "devices"})) {
      end_table();
      devices_ = {};
    }
    if (starts({"#", "Collective", "test", "starting:"})) operation_ = operation_named_in(line);
    for (const std::string_view word : words)
      if (word.starts_with("nccl-library=")) read_number_of_version(word.substr(word.find('=') + 1));
    if (starts({"#", "Rank"})) read_rank(words, line);
  }

  /// "#  Rank  3 Group  0 Pid 1006017 on pool0-01806 device  3 [0000:66:00] NVIDIA H100 80GB HBM3"
  void read_rank(const Words& words, std::string_view line) {
    const auto after = [&](std::string_view word) {
      const auto found = std::find(words.begin(), words.end(), word);
      return found == words.end() || found + 1 == words.end() ? std::string() : std::string(*(found + 1));
    };
    if (static_cast<std::size_t>(++devices_.ranks) > kMaxRanks)
      throw InputError(fmt::format("more than {} ranks", kMaxRanks), file_, line_);
    devices_.hosts.insert(after("on"));
    devices_.groups.insert(after("Group"));
    const std::size_t name = line.find(']');
    if (devices_.first.empty() && name != std::string_view::npos)
      devices_.first = trimmed(line.substr(name + 1), kBlanks);
  }

  /// "NCCL version 2.19.3+cuda12.3"
  void read_version(const Words& words) {
    const auto found = std::find(words.begin(), words.end(), "version");
    if (found != words.end() && found + 1 != words.end())
      version_ = std::string((found + 1)->substr(0, (found + 1)->find('+')));
  }

  /// 22809 is 2.28.9, 2708 is 2.7.8.
  void read_number_of_version(std::string_view text) {
    const auto number = core::number_in<std::int64_t>(text);
    if (!number || *number < 1'000 || *number > 1'000'000) return;
    const std::int64_t major = *number < 10'000 ? 1'000 : 10'000;
    version_ = fmt::format("{}.{}.{}", *number / major, *number % major / 100, *number % 100);
  }

  void end_table() {
    if (!table_) return;
    const Table table = std::move(*table_);
    table_.reset();
    if (table.rows.empty()) return;
    if (devices_.ranks == 0)
      throw InputError("no line \"# Rank …\" before this table tells the number of its ranks; give the whole log",
                       file_, table.line);
    if (devices_.groups.size() > 1)
      throw InputError("several groups were measured at once (NCCL_TESTS_SPLIT); give a log without", file_,
                       table.line);
    const std::string operation = operation_of(table);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const std::string_view out_of_place = table.field(row, "time"), in_place = table.field(row, "time", 1);
      const auto first = core::number_in<double>(out_of_place), second = core::number_in<double>(in_place);
      const bool second_is_shorter = second && *second > 0 && (!first || *second < *first);
      result_.push_back({table.rows[row].first, operation, devices_.first, version_,
                         std::string(table.field(row, "type")), devices_.ranks,
                         static_cast<std::int64_t>(devices_.hosts.size()), std::string(table.field(row, "size")),
                         std::string(second_is_shorter ? in_place : out_of_place)});
    }
  }

  /// Returns the operations whose columns look like this: by reduction, root, and whether the count is that of the
  /// whole size or of one rank's part.
  std::vector<std::string> possible_operations(const Table& table, std::size_t row) const {
    const std::string_view reduction = table.field(row, "redop"), root = table.field(row, "root");
    const bool reduces = !reduction.empty() && reduction != "none", rooted = !root.empty() && root != "-1";
    const std::int64_t size = core::number_in<std::int64_t>(table.field(row, "size")).value_or(0);
    const std::int64_t count = core::number_in<std::int64_t>(table.field(row, "count")).value_or(0);
    const std::int64_t elements = size / bytes_of_type(table.field(row, "type"));
    const bool whole = count == elements;
    if (count == 0 || (!whole && count != elements / devices_.ranks)) return {};
    if (reduces) return {rooted ? "reduce" : whole ? "all_reduce" : "reduce_scatter"};
    if (rooted) return whole ? std::vector<std::string>{"broadcast"} : std::vector<std::string>{"gather", "scatter"};
    return whole ? std::vector<std::string>{"sendrecv"}
                 : std::vector<std::string>{"all_gather", "alltoall", "hypercube"};
  }

  std::string operation_of(const Table& table) const {
    std::size_t last = table.rows.size() - 1;
    while (last > 0 && table.field(last, "size").empty()) --last;
    const std::vector<std::string> possible = possible_operations(table, last);
    const auto fits = [&](const std::string& name) {
      return std::find(possible.begin(), possible.end(), name) != possible.end();
    };
    if (!operation_.empty() && (possible.empty() || fits(operation_))) return operation_;
    if (possible.size() == 1) return possible.front();
    const auto is_checked = [&](int n) { return is_digits(table.field(last, "#wrong", n)); };
    if (fits("alltoall") && is_checked(0))
      return is_checked(1) ? "all_gather" : "alltoall";  // it has no check in place
    std::string in_name;
    for (const std::string& name : possible)
      if (file_.find(name) != std::string::npos) in_name = name;
    if (!in_name.empty()) return in_name;
    throw InputError(
        fmt::format("what was measured is not told: its columns are those of {}; name the file after it, as in "
                    "all_gather.log",
                    possible.empty() ? "no operation" : fmt::format("{}", fmt::join(possible, ", "))),
        file_, table.line);
  }

  const std::string& file_;
  int line_ = 1;
  std::size_t rows_ = 0;
  std::optional<Table> table_;
  Devices devices_;
  std::string operation_, version_;
  std::vector<NcclTestRow> result_;
};

}  // namespace

bool is_nccl_tests(std::string_view text) {
  bool found = false;
  for_each_line(text, [&](std::string_view line, int) { found = found || header_of(line).has_value(); });
  return found;
}

std::vector<NcclTestRow> parse_nccl_tests(std::string_view text, const std::string& name) {
  check_text(text, name);
  return Reader(name).read(text);
}

}  // namespace manyworlds::experiments::import
