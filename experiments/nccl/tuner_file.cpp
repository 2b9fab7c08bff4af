#include "experiments/nccl/tuner_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "core/base/error.hpp"
#include "experiments/text/lines.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::collective::Algorithm;
using core::collective::Kind;
using core::collective::Protocol;
using core::collective::TunerRule;

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMinColumns = 8, kMaxColumns = 10, kMaxRules = 10'000;
constexpr std::int64_t kMaxChannels = 64;  // MAXCHANNELS of NCCL
constexpr std::size_t kMaxShownCharacters = 40;
constexpr const char* kColumns =
    "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]";

template <class Value, std::size_t kCount>
using Names = std::array<std::pair<std::string_view, Value>, kCount>;

constexpr Names<Kind, 5> kKinds{{{"broadcast", Kind::broadcast},
                                 {"reduce", Kind::reduce},
                                 {"allgather", Kind::all_gather},
                                 {"reducescatter", Kind::reduce_scatter},
                                 {"allreduce", Kind::all_reduce}}};
constexpr Names<Protocol, 3> kProtocols{
    {{"ll", Protocol::ll}, {"ll128", Protocol::ll128}, {"simple", Protocol::simple}}};
constexpr std::array<std::string_view, 4> kNotModelled{"collnet_direct", "collnet_chain", "nvls_tree", "pat"};

bool is_half(Kind kind) {
  return kind == Kind::all_gather || kind == Kind::reduce_scatter;
}

class Line {
 public:
  Line(std::string_view text, int number, const std::string& file) : number_(number), file_(file) {
    for (std::size_t comma = 0; comma != text.npos; text.remove_prefix(std::min(comma + 1, text.size()))) {
      comma = text.find(',');
      fields_.push_back(trimmed(text.substr(0, comma), kBlanks));
    }
  }

  bool is_header() const { return fields_.front() == "collective_type" || fields_.front() == "colltype"; }

  /// Adds the line to `file`.
  void read(TunerFile& file) const {
    if (fields_.size() < kMinColumns || fields_.size() > kMaxColumns)
      fail(fmt::format("has {} columns; {} to {} are right: {}", fields_.size(), kMinColumns, kMaxColumns, kColumns));
    TunerRule rule;
    rule.line = number_;
    rule.kind = named(kKinds, 0, "collective_type");
    rule.min_bytes = bytes(1, "min_bytes");
    rule.max_bytes = bytes(2, "max_bytes");
    if (rule.max_bytes < rule.min_bytes)
      fail(fmt::format("max_bytes {} is below min_bytes {}", rule.max_bytes, rule.min_bytes));
    rule.protocol = named(kProtocols, 4, "protocol");
    rule.channels = any_or(5, "channels", 1, kMaxChannels);
    rule.nodes = any_or(6, "nNodes", 1);
    rule.members = any_or(7, "nRanks", 1);
    const std::string why = why_idle(rule);
    if (!why.empty())
      file.idle.push_back({number_, why});
    else
      file.rules.push_back(rule), file.rules.back().algorithm = algorithm(rule.kind);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw core::InputError(what, file_, number_); }
  std::string shown(std::size_t field) const { return std::string(fields_[field].substr(0, kMaxShownCharacters)); }

  template <class Value, std::size_t kCount>
  Value named(const Names<Value, kCount>& names, std::size_t field, const char* column) const {
    std::vector<std::string_view> known;
    for (const auto& [name, value] : names) {
      if (name == fields_[field]) return value;
      known.push_back(name);
    }
    fail(fmt::format("{} must be one of {}, not '{}'", column, fmt::join(known, ", "), shown(field)));
  }

  /// Sizes beyond what a number holds are as good as the largest one.
  std::int64_t bytes(std::size_t field, const char* column) const {
    std::uint64_t value = 0;
    const char* const end = fields_[field].data() + fields_[field].size();
    const auto [at, error] = std::from_chars(fields_[field].data(), end, value);
    if (at != end || fields_[field].empty() || error == std::errc::invalid_argument)
      fail(fmt::format("{} must be a number of bytes, not '{}'", column, shown(field)));
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(error == std::errc() ? std::min(value, kMost) : kMost);
  }

  std::int64_t integer(std::size_t field, const char* column, std::int64_t least, std::int64_t most) const {
    std::int64_t value = 0;
    const char* const end = fields_[field].data() + fields_[field].size();
    const auto [at, error] = std::from_chars(fields_[field].data(), end, value);
    if (at != end || error != std::errc() || (value != -1 && (value < least || value > most)))
      fail(fmt::format("{} must be -1 (any) or a number from {} to {}, not '{}'", column, least, most, shown(field)));
    return value;
  }

  /// Returns 0 for -1.
  std::int64_t any_or(std::size_t field, const char* column, std::int64_t least,
                      std::int64_t most = std::numeric_limits<std::int32_t>::max()) const {
    return std::max<std::int64_t>(0, integer(field, column, least, most));
  }

  /// Returns why no collective can match the line, or NCCL itself passes it over; empty if neither is so.
  std::string why_idle(const TunerRule& rule) const {
    const std::string_view algorithm = fields_[3];
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t operations = fields_.size() > 8 ? integer(8, "numPipeOps", 1, kMost) : -1;
    const std::int64_t registered = fields_.size() > 9 ? integer(9, "regBuff", 0, 1) : -1;
    if (operations > 1) return "numPipeOps above 1: collectives are launched one by one";
    if (registered == 1) return "regBuff 1: no buffers are registered";
    if (algorithm == "tree" && rule.kind != Kind::all_reduce) return "NCCL has trees for allreduce alone";
    if (algorithm != "nvls") return "";
    if (rule.kind != Kind::all_reduce && !is_half(rule.kind)) return "NCCL has no nvls for broadcast and reduce";
    return rule.protocol == Protocol::simple ? "" : "nvls has protocol simple alone";
  }

  /// What NCCL calls a ring is a chain in rooted operations.
  Algorithm algorithm(Kind kind) const {
    const std::string_view name = fields_[3];
    if (name == "ring") return kind == Kind::all_reduce || is_half(kind) ? Algorithm::ring : Algorithm::chain;
    if (name == "tree") return Algorithm::double_tree;
    if (name == "nvls") return Algorithm::in_switch;
    if (std::find(kNotModelled.begin(), kNotModelled.end(), name) != kNotModelled.end())
      fail(fmt::format("algorithm {} of NCCL is not modelled; tree, ring and nvls are", name));
    fail(fmt::format("algorithm must be one of tree, ring, nvls, not '{}'", shown(3)));
  }

  std::vector<std::string_view> fields_;
  int number_;
  const std::string& file_;
};

}  // namespace

TunerFile parse_tuner_file(std::string_view text, const std::string& name) {
  check_size(text.size(), name);
  check_text(text, name);
  TunerFile file;
  bool is_first = true;
  for_each_line(text, [&](std::string_view whole, int number) {
    const std::string_view content = trimmed(whole, kBlanks);
    if (content.empty() || content.front() == '#') return;
    const Line line(content, number, name);
    if (!is_first || !line.is_header()) line.read(file);
    is_first = false;
    if (file.rules.size() + file.idle.size() > kMaxRules)
      throw core::InputError(fmt::format("has more than {} lines", kMaxRules), name, number);
  });
  if (file.rules.empty() && file.idle.empty())
    throw core::InputError(fmt::format("chooses nothing; give lines of {}", kColumns), name, 1);
  return file;
}

}  // namespace manyworlds::experiments::import
