#include "experiments/profiler_events/communication.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <numeric>

namespace manyworlds::experiments::profiler {
namespace {

using core::collective::Kind;
using core::workload::StepPart;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMaxRanks = 1 << 20;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
/// Behind leading underscores, as PyTorch's ProcessGroupNCCL calls them.
constexpr std::array kKinds{NamedKind{"allreduce", Kind::all_reduce},
                            NamedKind{"all_reduce", Kind::all_reduce},
                            NamedKind{"allreduce_coalesced", Kind::all_reduce},
                            NamedKind{"all_reduce_barrier", Kind::all_reduce},
                            NamedKind{"barrier", Kind::all_reduce},
                            NamedKind{"allgather", Kind::all_gather},
                            NamedKind{"all_gather", Kind::all_gather},
                            NamedKind{"all_gather_base", Kind::all_gather},
                            NamedKind{"all_gather_single", Kind::all_gather},
                            NamedKind{"all_gather_into_tensor_coalesced", Kind::all_gather},
                            NamedKind{"allgather_base", Kind::all_gather},
                            NamedKind{"allgather_coalesced", Kind::all_gather},
                            NamedKind{"allgather_into_tensor_coalesced", Kind::all_gather},
                            NamedKind{"all_gather_into_tensor", Kind::all_gather},
                            NamedKind{"reduce_scatter", Kind::reduce_scatter},
                            NamedKind{"reduce_scatter_base", Kind::reduce_scatter},
                            NamedKind{"reduce_scatter_coalesced", Kind::reduce_scatter},
                            NamedKind{"reduce_scatter_single", Kind::reduce_scatter},
                            NamedKind{"reduce_scatter_tensor", Kind::reduce_scatter},
                            NamedKind{"reduce_scatter_tensor_coalesced", Kind::reduce_scatter},
                            NamedKind{"all_to_all", Kind::all_to_all},
                            NamedKind{"all_to_allv", Kind::all_to_all},
                            NamedKind{"all_to_all_single", Kind::all_to_all},
                            NamedKind{"all_to_all_v_single", Kind::all_to_all},
                            NamedKind{"alltoall", Kind::all_to_all},
                            NamedKind{"alltoall_base", Kind::all_to_all},
                            NamedKind{"broadcast", Kind::broadcast},
                            NamedKind{"broadcast_oop", Kind::broadcast},
                            NamedKind{"reduce", Kind::reduce},
                            NamedKind{"reduce_oop", Kind::reduce},
                            NamedKind{"send", Kind::send},
                            NamedKind{"recv", Kind::send}};

struct NamedDtype {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array kDtypes{NamedDtype{"float", 4},
                             NamedDtype{"half", 2},
                             NamedDtype{"bfloat16", 2},
                             NamedDtype{"double", 8},
                             NamedDtype{"long", 8},
                             NamedDtype{"int", 4},
                             NamedDtype{"short", 2},
                             NamedDtype{"byte", 1},
                             NamedDtype{"char", 1},
                             NamedDtype{"bool", 1},
                             NamedDtype{"float8_e4m3fn", 1},
                             NamedDtype{"float8_e5m2", 1},
                             NamedDtype{"float8_e4m3fnuz", 1},
                             NamedDtype{"float8_e5m2fnuz", 1},
                             NamedDtype{"float8_e8m0fnu", 1},
                             NamedDtype{"float4_e2m1fn_x2", 1},
                             NamedDtype{"uint16", 2},
                             NamedDtype{"uint32", 4},
                             NamedDtype{"uint64", 8},
                             NamedDtype{"complexhalf", 4},
                             NamedDtype{"complexdouble", 16},
                             NamedDtype{"complexfloat", 8},
                             NamedDtype{"float16", 2},
                             NamedDtype{"float32", 4},
                             NamedDtype{"float64", 8},
                             NamedDtype{"int64", 8},
                             NamedDtype{"int32", 4},
                             NamedDtype{"uint8", 1},
                             NamedDtype{"int8", 1}};

std::string plain(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  std::string text;
  for (const char c : name) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Returns the whole numbers of a text, and where it has `...`: before how many of them.
struct NumbersOfText {
  std::vector<std::int64_t> numbers;
  std::optional<std::size_t> gap;
  bool is_list = true;
};
NumbersOfText numbers_of(std::string_view text) {
  NumbersOfText found;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] >= '0' && text[at] <= '9') {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (error != std::errc()) found.is_list = false;
      found.numbers.push_back(number);
      at = static_cast<std::size_t>(end - text.data());
      continue;
    }
    if (text.substr(at).starts_with("...")) {
      found.is_list &= !found.gap;
      found.gap = found.numbers.size();
      at += 3;
      continue;
    }
    found.is_list &= std::string_view("[](), \t").find(text[at]) != std::string_view::npos;
    ++at;
  }
  return found;
}

/// Fills the gap of a regular sequence so that it has `size` numbers; empty if that does not fit what is there.
std::vector<std::int64_t> regular(const NumbersOfText& found, std::int64_t size) {
  const std::vector<std::int64_t>& known = found.numbers;
  if (size < 2 || size > kMaxRanks || *found.gap < 2 || static_cast<std::int64_t>(known.size()) > size) return {};
  if (std::any_of(known.begin(), known.end(), [](std::int64_t rank) { return rank >= kMaxRanks; })) return {};
  const std::int64_t stride = known[1] - known[0];
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < size; ++i) all.push_back(known[0] + i * stride);
  const std::size_t behind = known.size() - *found.gap;
  const auto gap = static_cast<std::ptrdiff_t>(*found.gap);
  if (!std::equal(known.begin(), known.begin() + gap, all.begin()) ||
      !std::equal(known.begin() + gap, known.end(), all.end() - static_cast<std::ptrdiff_t>(behind)))
    return {};
  return all;
}

/// Returns the ranks of a group that are evenly apart; empty if that is not said.
std::vector<std::uint32_t> even_ranks(const CommunicationArguments& arguments) {
  const std::int64_t first = arguments.first_rank, stride = arguments.rank_stride, size = arguments.group_size;
  if (first < 0 || first >= kMaxRanks || stride < 1 || stride >= kMaxRanks || size < 1) return {};
  if (size > kMaxRanks || first + stride * (size - 1) >= kMaxRanks) return {};
  std::vector<std::uint32_t> ranks;
  for (std::int64_t i = 0; i < size; ++i) ranks.push_back(static_cast<std::uint32_t>(first + i * stride));
  return ranks;
}

/// Returns what is sent to each member, in bytes, of a text with the rows of each; empty if they are all the same.
std::vector<std::int64_t> counts_of(const std::string& text, std::int64_t bytes) {
  const NumbersOfText rows = numbers_of(text);
  if (!rows.is_list || rows.gap || rows.numbers.size() < 2) return {};
  std::int64_t sum = 0;
  for (const std::int64_t one : rows.numbers) {
    if (one > kMaxBytes - sum) return {};
    sum += one;
  }
  if (sum == 0 || bytes % sum != 0) return {};
  if (std::all_of(rows.numbers.begin(), rows.numbers.end(), [&](std::int64_t one) { return one == rows.numbers[0]; }))
    return {};
  std::vector<std::int64_t> counts;
  for (const std::int64_t one : rows.numbers) counts.push_back(one * (bytes / sum));
  return counts;
}

/// Returns the elements that the kind's bytes are about; below 0 if they are not known.
std::int64_t elements_of(Kind kind, const CommunicationArguments& arguments, bool receives) {
  if (kind == Kind::all_gather) return arguments.out;
  if (receives) return std::max(arguments.in, arguments.out);
  if (kind == Kind::send || kind == Kind::broadcast) return arguments.in > 0 ? arguments.in : arguments.out;
  return arguments.in;
}

}  // namespace

std::optional<Kind> collective_kind(std::string_view name) {
  const std::string text = plain(name);
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const NamedKind& one) { return one.name == text; });
  return kind == kKinds.end() ? std::nullopt : std::optional(kind->kind);
}

StepPart exposed_part(std::string_view description) {
  const std::string text = plain(description);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  if (has("data") || has("dp") || has("shard") || has("replicate")) return StepPart::exposed_dp;
  if (has("tensor") || has("tp")) return StepPart::exposed_tp;
  if (has("pipeline") || has("pp")) return StepPart::exposed_pp;
  if (has("context") || has("cp")) return StepPart::exposed_cp;
  if (has("expert") || has("ep")) return StepPart::exposed_ep;
  return StepPart::exposed_other;
}

std::int64_t bytes_of_dtype(std::string_view name) {
  const std::string text = plain(name);
  for (const NamedDtype& one : kDtypes)
    if (one.name == text) return one.bytes;
  return 0;
}

std::optional<NamedCollective> named_collective(const CommunicationArguments& arguments,
                                                const std::vector<std::string>& names) {
  if (arguments.collective == kNone || arguments.dtype == kNone) return std::nullopt;
  const auto kind = collective_kind(names[arguments.collective]);
  if (!kind) return std::nullopt;
  NamedCollective result;
  result.kind = *kind;
  result.receives = plain(names[arguments.collective]) == "recv";
  const std::int64_t elements = elements_of(result.kind, arguments, result.receives);
  const std::int64_t each = bytes_of_dtype(names[arguments.dtype]);
  if (elements <= 0 || each == 0 || elements > kMaxBytes / each) return std::nullopt;
  result.bytes = elements * each;
  if (result.kind == Kind::send) result.peer = result.receives ? arguments.source : arguments.destination;
  if (result.kind == Kind::send && result.peer < 0) return std::nullopt;
  if (result.kind == Kind::broadcast || result.kind == Kind::reduce) result.root = arguments.root;
  if (result.kind == Kind::all_to_all && arguments.in_split != kNone)
    result.counts = counts_of(names[arguments.in_split], result.bytes);
  return result;
}

std::vector<std::uint32_t> ranks_of_text(std::string_view text, std::int64_t size) {
  const NumbersOfText found = numbers_of(text);
  if (!found.is_list || found.numbers.empty()) return {};
  const std::vector<std::int64_t> numbers = found.gap ? regular(found, size) : found.numbers;
  std::vector<std::uint32_t> ranks;
  for (const std::int64_t number : numbers) {
    if (number < 0 || number >= kMaxRanks) return {};
    ranks.push_back(static_cast<std::uint32_t>(number));
  }
  std::vector<std::uint32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return {};
  return ranks;
}

std::vector<std::uint32_t> group_ranks(const CommunicationArguments& arguments, const RankTrace& trace) {
  const auto fits = [&](const std::vector<std::uint32_t>& ranks) {
    return !ranks.empty() &&
           (arguments.group_size < 0 || static_cast<std::int64_t>(ranks.size()) == arguments.group_size);
  };
  if (arguments.ranks != kNone) {
    std::vector<std::uint32_t> ranks = ranks_of_text(trace.names[arguments.ranks], arguments.group_size);
    if (fits(ranks)) return ranks;
  }
  if (arguments.group != kNone) {
    const auto known = trace.groups.find(trace.names[arguments.group]);
    if (known != trace.groups.end() && fits(known->second)) return known->second;
  }
  if (std::vector<std::uint32_t> ranks = even_ranks(arguments); !ranks.empty()) return ranks;
  if (!trace.world || *trace.world != arguments.group_size || *trace.world > kMaxRanks) return {};
  std::vector<std::uint32_t> all(static_cast<std::size_t>(*trace.world));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace manyworlds::experiments::profiler
