#include "experiments/nccl_logs/flight_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "core/base/error.hpp"
#include "experiments/nccl_logs/pickle.hpp"
#include "experiments/profiler_events/communication.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::InputError;
using core::collective::Kind;
using import::JsonView;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 62;
constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 30;

/// Returns the bytes of tensors: of sizes such as [[3, 4], [5]], and the types of their elements.
std::int64_t bytes_of(const JsonView& entry, const char* sizes, const char* dtypes) {
  std::vector<std::int64_t> each;
  entry.at(dtypes).for_each([&](const JsonView& type) {
    each.push_back(profiler::bytes_of_dtype(type.text()));
    if (each.back() == 0) throw InputError(fmt::format("has elements of type {}, which is not known", type.text()));
  });
  std::int64_t sum = 0;
  std::size_t tensor = 0;
  entry.at(sizes).for_each([&](const JsonView& dimensions) {
    if (each.empty()) throw InputError(fmt::format("has {} without {}", sizes, dtypes));
    std::int64_t bytes = each[std::min(tensor++, each.size() - 1)];
    dimensions.for_each([&](const JsonView& size) {
      const std::int64_t factor = size.whole(0, kMaxBytes);
      if (factor > 0 && bytes > kMaxBytes / factor) throw InputError(fmt::format("has {} beyond 2^50 bytes", sizes));
      bytes *= factor;
    });
    if (bytes > kMaxBytes - sum) throw InputError(fmt::format("has {} beyond 2^50 bytes", sizes));
    sum += bytes;
  });
  return sum;
}

std::int64_t bytes_of_call(Kind kind, const JsonView& entry) {
  const auto in = [&] { return bytes_of(entry, "input_sizes", "input_dtypes"); };
  const auto out = [&] { return bytes_of(entry, "output_sizes", "output_dtypes"); };
  if (kind == Kind::all_gather) return out();
  if (kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::all_to_all || kind == Kind::reduce)
    return in();
  return std::max(in(), out());
}

/// Returns the ranks of a group as a text, as dumps have them, or of a list of numbers, as tools write that.
std::string text_of_ranks(const JsonView& ranks) {
  try {
    return ranks.text();
  } catch (const InputError&) {
    std::string text;
    ranks.for_each([&](const JsonView& rank) { text += fmt::format("{}{}", text.empty() ? "[" : ", ", rank.whole()); });
    return text + "]";
  }
}

/// Sets both ends of `send 0->1` or `recv 1<-0`.
void set_ends(std::string_view text, RecordedCall& call) {
  const std::size_t arrow = text.find(call.receives ? "<-" : "->");
  std::int64_t first = -1, second = -1;
  const auto number = [](std::string_view digits, std::int64_t& to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    return error == std::errc() && end == digits.data() + digits.size() && to >= 0;
  };
  if (arrow == std::string_view::npos || !number(text.substr(0, arrow), first) ||
      !number(text.substr(arrow + 2), second))
    throw InputError(fmt::format("is a transfer whose name does not say from whom to whom, as 'send 0->1' does: '{}'",
                                 text.substr(0, 40)));
  call.source = call.receives ? second : first;
  call.destination = call.receives ? first : second;
}

CallState state_of(const std::string& text) {
  if (text == "completed") return CallState::completed;
  return text == "started" ? CallState::started : CallState::scheduled;
}

class DumpReader {
 public:
  DumpReader(const JsonView& groups, FlightDump& to) : groups_(groups), to_(to) {}

  void add(const JsonView& entry) {
    RecordedCall call;
    call.record = entry.at("record_id").whole(0, kMaxNumber);
    call.sequence = number(entry, "collective_seq_id");
    call.transfer_sequence = number(entry, "p2p_seq_id");
    call.created_ns = number(entry, "time_created_ns");
    if (const auto state = entry.find("state")) call.state = state_of(state->text());
    call.group = group_of(entry);
    std::string_view name = entry.at("profiling_name").text();
    if (const std::size_t colon = name.find(':'); colon != name.npos) name.remove_prefix(colon + 1);
    const std::size_t space = name.find(' ');
    call.name = name.substr(0, space);
    call.kind = profiler::collective_kind(call.name);
    if (call.kind == Kind::send) {
      call.receives = call.name == "recv";
      set_ends(space == name.npos ? std::string_view() : name.substr(space + 1), call);
    }
    if (call.kind) call.bytes = bytes_of_call(*call.kind, entry);
    to_.calls.push_back(std::move(call));
  }

 private:
  static std::int64_t number(const JsonView& entry, const char* member) {
    const auto found = entry.find(member);
    return found && !found->is_null() ? found->whole(0, kMaxNumber) : 0;
  }

  std::uint32_t group_of(const JsonView& entry) {
    std::vector<std::string> names;
    entry.at("process_group").for_each([&](const JsonView& name) { names.push_back(name.text()); });
    if (names.empty()) throw InputError("has an empty 'process_group'");
    const auto known = numbers_.find(names[0]);
    if (known != numbers_.end()) return known->second;
    RecordedGroup group;
    group.name = names[0];
    const auto configured = groups_.find(names[0].c_str());
    if (!configured) throw InputError(fmt::format("is of group '{}', which 'pg_config' does not have", names[0]));
    if (const auto description = configured->find("desc")) group.description = description->text();
    const std::string ranks = text_of_ranks(configured->at("ranks"));
    group.ranks = profiler::ranks_of_text(ranks, -1);
    if (group.ranks.empty())
      throw InputError(
          fmt::format("has the ranks of group '{}' as '{}', not as '[0, 1]'", names[0], ranks.substr(0, 40)));
    const auto number = static_cast<std::uint32_t>(to_.groups.size());
    numbers_.emplace(names[0], number);
    to_.groups.push_back(std::move(group));
    return number;
  }

  JsonView groups_;
  FlightDump& to_;
  std::map<std::string, std::uint32_t> numbers_;
};

}  // namespace

bool is_flight_dump(std::string_view bytes) {
  if (is_pickle(bytes)) return true;
  const std::size_t at = bytes.find_first_not_of(" \t\r\n");
  if (at == bytes.npos || bytes[at] != '{') return false;
  return bytes.find("\"pg_config\"") != bytes.npos
             ? bytes.find("\"pg_status\"") != bytes.npos || bytes.find("\"record_id\"") != bytes.npos
             : bytes.find("\"record_id\"") != bytes.npos && bytes.find("\"collective_seq_id\"") != bytes.npos;
}

std::optional<std::uint32_t> rank_of_dump(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const char* ending : {".gz", ".json", ".pkl", ".pickle"})
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  const std::size_t last = name.find_last_not_of("0123456789");
  std::uint32_t rank = 0;
  const char* begin = name.data() + (last == name.npos ? 0 : last + 1);
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), rank);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(rank) : std::nullopt;
}

FlightDump parse_flight_dump(std::string_view bytes, const std::string& file) {
  const nlohmann::json document =
      is_pickle(bytes) ? parse_pickle(bytes, file, {"frames"}) : import::parse_json(bytes, file, kMaxJsonBytes);
  FlightDump dump;
  dump.file = file;
  std::size_t number = 0;
  try {
    if (!document.is_object())
      throw InputError(
          "is no object with 'entries' and 'pg_config', as a dump of PyTorch's flight recorder (2.5 and on) is");
    const JsonView view(document);
    const auto entries = view.find("entries"), groups = view.find("pg_config");
    if (!entries || !groups)
      throw InputError(fmt::format("has no '{}', as a dump of PyTorch's flight recorder (2.5 and on) does",
                                   entries ? "pg_config" : "entries"));
    DumpReader reader(*groups, dump);
    entries->for_each([&](const JsonView& entry) {
      reader.add(entry);
      ++number;
    });
  } catch (const InputError& error) {
    throw InputError(number > 0 || !dump.groups.empty() ? fmt::format("entry {}: {}", number, error.what())
                                                        : std::string(error.what()),
                     file);
  }
  std::stable_sort(dump.calls.begin(), dump.calls.end(),
                   [](const RecordedCall& a, const RecordedCall& b) { return a.record < b.record; });
  return dump;
}

}  // namespace manyworlds::experiments::nccl_logs
