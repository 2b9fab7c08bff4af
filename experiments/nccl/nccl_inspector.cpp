// NVIDIA/nccl, plugins/profiler/inspector/README.md. Objects follow each other, on a line each or printed over several.
#include "experiments/nccl/nccl_inspector.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr std::size_t kMaxObjects = 2'000'000;
constexpr std::int64_t kMaxRanks = 1 << 20, kMaxBytes = std::int64_t{1} << 45;

/// Returns the length of the JSON object that `text` begins with; npos if it does not end.
std::size_t object_length(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\';
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

/// What nccl-tests calls a collective, and whether the Inspector counts the bytes of one rank's part of it.
struct Operation {
  std::string_view inspector, name;
  bool counts_part;
};
constexpr Operation kOperations[] = {{"AllReduce", "all_reduce", false},
                                     {"AllGather", "all_gather", true},
                                     {"ReduceScatter", "reduce_scatter", true},
                                     {"Broadcast", "broadcast", false},
                                     {"Reduce", "reduce", false}};

using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;  // operation, bytes, ranks, nodes

class InspectorReader {
 public:
  void add(const JsonView& object, int line) {
    const auto performance = object.find("coll_perf");
    if (!performance) return;
    const std::string& name = performance->at("coll").text();
    const auto operation = std::find_if(std::begin(kOperations), std::end(kOperations),
                                        [&](const Operation& one) { return one.inspector == name; });
    if (operation == std::end(kOperations)) return;
    const JsonView header = object.at("header");
    const std::int64_t ranks = header.at("n_ranks").whole(1, kMaxRanks),
                       nodes = header.at("nnodes").whole(1, kMaxRanks);
    const std::int64_t bytes = performance->at("coll_msg_size_bytes").whole(0, kMaxBytes);
    const double time_us = performance->at("coll_exec_time_us").number(0);
    if (ranks < 2 || bytes == 0 || !(time_us > 0)) return;
    const Key key{std::string(operation->name), operation->counts_part ? bytes * ranks : bytes, ranks, nodes};
    auto& [first_line, times] = times_[key];
    if (times.empty()) first_line = line, order_.push_back(key);
    times.push_back(time_us);
  }

  std::vector<NcclTestRow> rows() {
    std::vector<NcclTestRow> result;
    for (const Key& key : order_) {
      auto& [line, times] = times_.at(key);
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
      NcclTestRow row;
      row.line = line;
      row.operation = std::get<0>(key);
      row.bytes = std::to_string(std::get<1>(key));
      row.ranks = std::get<2>(key), row.nodes = std::get<3>(key);
      row.time_us = fmt::format("{}", times[times.size() / 2]);
      result.push_back(std::move(row));
    }
    return result;
  }

 private:
  std::map<Key, std::pair<int, std::vector<double>>> times_;
  std::vector<Key> order_;
};

}  // namespace

bool is_nccl_inspector(std::string_view text) {
  return text.find("\"coll_perf\"") != text.npos && text.find("\"coll_exec_time_us\"") != text.npos;
}

void for_each_inspector_object(std::string_view text, const std::string& name,
                               const std::function<void(const JsonView& object, int line)>& visit) {
  check_text(text, name);
  int line = 1;
  std::size_t objects = 0;
  while (true) {
    const std::size_t begin = std::min(text.find('{'), text.size());
    line += static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
    text.remove_prefix(begin);
    if (text.empty()) break;
    const std::size_t length = object_length(text);
    if (length == text.npos) throw InputError("the file ends inside this object", name, line);
    if (++objects > kMaxObjects) throw InputError(fmt::format("holds more than {} objects", kMaxObjects), name, line);
    try {
      const nlohmann::json object = parse_json(text.substr(0, length), name);
      visit(JsonView(object), line);
    } catch (const InputError& error) {
      throw InputError(error.what(), name, line);
    }
    line += static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n'));
    text.remove_prefix(length);
  }
}

std::vector<NcclTestRow> parse_nccl_inspector(std::string_view text, const std::string& name) {
  InspectorReader reader;
  for_each_inspector_object(text, name, [&](const JsonView& object, int line) { reader.add(object, line); });
  std::vector<NcclTestRow> rows = reader.rows();
  if (rows.empty()) throw InputError("has no collective of several ranks that nccl-tests has too", name, 1);
  return rows;
}

}  // namespace manyworlds::experiments::import
