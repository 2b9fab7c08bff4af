#include "experiments/goal/write_goal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/dag/dag.hpp"
#include "experiments/programs/written_account.hpp"

namespace manyworlds::experiments::goal {
namespace {

using core::InputError;
using core::collective::Kind;
using programs::Communication;

constexpr std::size_t kMaxLines = 100'000'000;
constexpr std::uint32_t kTagBits = 20, kTagMask = (1u << kTagBits) - 1, kMaxDimensions = 1u << (32 - kTagBits);

core::collective::Algorithm algorithm_of(Kind kind, const GoalAlgorithms& algorithms) {
  if (kind == Kind::all_to_all) return algorithms.all_to_all;
  if (kind == Kind::broadcast || kind == Kind::reduce) return algorithms.broadcast;
  return algorithms.all_reduce;
}

/// The transfers of a collective, and which of them each waits for, with join nodes between them resolved.
struct Expanded {
  core::collective::Dag dag;
  std::vector<std::vector<std::uint32_t>> before;  // by transfer

  explicit Expanded(core::collective::Dag built) : dag(std::move(built)) {
    const std::size_t transfers = dag.transfers.size(), nodes = dag.wait_count.size();
    std::vector<std::vector<std::uint32_t>> direct(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node)
      for (std::uint32_t i = dag.successors_begin[node]; i < dag.successors_begin[node + 1]; ++i)
        direct[dag.successors[i]].push_back(node);
    before.resize(transfers);
    std::vector<bool> seen(nodes);
    for (std::uint32_t transfer = 0; transfer < transfers; ++transfer) {
      std::vector<std::uint32_t> open = direct[transfer], joins;
      while (!open.empty()) {
        const std::uint32_t node = open.back();
        open.pop_back();
        if (node < transfers) {
          before[transfer].push_back(node);
        } else if (!seen[node]) {
          seen[node] = true;
          joins.push_back(node);
          open.insert(open.end(), direct[node].begin(), direct[node].end());
        }
      }
      for (const std::uint32_t join : joins) seen[join] = false;
    }
  }
  std::pair<std::uint32_t, std::uint32_t> ends(std::uint32_t transfer) const {
    return dag.pairs[dag.transfers[transfer].pair];
  }
};

/// Expands collectives, each shape once.
class Expansions {
 public:
  Expansions(const GoalAlgorithms& algorithms, const std::string& name) : algorithms_(algorithms), name_(name) {}

  const Expanded& of(const Communication& call, std::uint32_t members) {
    core::collective::Shape shape;
    shape.kind = call.kind;
    shape.algorithm = algorithm_of(call.kind, algorithms_);
    shape.members = members;
    shape.bytes = call.bytes;
    shape.split = call.split;
    std::unique_ptr<Expanded>& known = known_[shape];
    if (known) return *known;
    if (!core::collective::supports(shape.algorithm, shape.kind))
      throw InputError(fmt::format("has a {}, which {} does not do", core::collective::name_of(call.kind),
                                   core::collective::info_of(shape.algorithm).name),
                       name_);
    known = std::make_unique<Expanded>(core::collective::build(shape));
    if (!known->dag.switches.empty())
      throw InputError("has collectives of switches, which GOAL has no form for", name_);
    return *known;
  }

  /// Returns which collectives were written by which algorithm's transfers; empty if there was none.
  std::string text() const {
    std::set<std::string> all;
    for (const auto& [shape, expanded] : known_)
      all.insert(fmt::format("{} by {}", core::collective::name_of(shape.kind),
                             core::collective::info_of(shape.algorithm).name));
    return all.empty() ? "" : fmt::format("collectives are the transfers of an algorithm: {}", fmt::join(all, ", "));
  }

 private:
  const GoalAlgorithms& algorithms_;
  const std::string& name_;
  std::map<core::collective::Shape, std::unique_ptr<Expanded>> known_;
};

/// Where a rank stands in the groups of its dimensions, and which tags these have.
class Places {
 public:
  explicit Places(const programs::StreamPrograms& programs) : programs_(programs) {
    for (std::uint32_t i = 0; i < programs.ranks.groups.size(); ++i) {
      const core::workload::GivenGroup& group = programs.ranks.groups[i];
      const bool is_pair = programs.ranks.dimensions[group.dimension].kind != core::workload::DimensionKind::groups;
      for (std::uint32_t member = 0; member < group.ranks.size(); ++member)
        places_[{group.ranks[member], group.dimension, is_pair && member == 1}] = {i, member};
    }
  }

  struct Place {
    std::uint32_t group = 0, member = 0;
  };
  Place of(std::uint32_t rank, std::uint32_t dimension, bool receives) const {
    return places_.at({rank, dimension, receives});
  }
  const std::vector<std::uint32_t>& ranks(Place place) const { return programs_.ranks.groups[place.group].ranks; }

 private:
  const programs::StreamPrograms& programs_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, Place> places_;
};

class RankWriter {
 public:
  RankWriter(const programs::StreamPrograms& programs, const Places& places, Expansions& expansions, std::uint32_t rank,
             const std::string& name, std::ostream& out, std::size_t& lines)
      : programs_(programs),
        places_(places),
        expansions_(expansions),
        rank_(rank),
        name_(name),
        out_(out),
        lines_(lines) {}

  void write() {
    const programs::RankProgram& program = programs_.programs[programs_.ranks.program_of_rank[rank_]];
    if (program.streams.size() > 256) throw InputError("has more than 256 streams, and GOAL 256 cpus", name_);
    out_ << fmt::format("\nrank {} {{\n", rank_);
    std::vector<std::int64_t> last(program.streams.size(), -1);
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const programs::StreamOp& op = program.ops[i];
      std::vector<std::uint32_t> after = op.after;
      if (last[op.stream] >= 0) after.push_back(static_cast<std::uint32_t>(last[op.stream]));
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      last[op.stream] = i;
      write(i, op, after);
    }
    out_ << "}\n";
  }

  const programs::Rounding& rounding() const { return rounding_; }

 private:
  void line(const std::string& line) {
    if (++lines_ > kMaxLines) throw InputError("has more than 100,000,000 lines as GOAL", name_);
    out_ << line << '\n';
  }

  /// Operations are o0, o1, ...; of those that are written as several, that one is the last.
  void after(const std::string& label, const std::vector<std::uint32_t>& ops) {
    for (const std::uint32_t op : ops) line(fmt::format("{} requires o{}", label, op));
  }

  void write(std::uint32_t number, const programs::StreamOp& op, const std::vector<std::uint32_t>& before) {
    const std::string label = fmt::format("o{}", number);
    if (const auto* call = std::get_if<Communication>(&op.work)) {
      if (call->kind == Kind::send) return write_transfer(label, *call, op.stream, before);
      return write_collective(label, *call, op.stream, before);
    }
    const double us = us_of(op);
    const long long ns = std::llround(us * 1e3);
    rounding_.add(us, static_cast<double>(ns) * 1e-3);
    line(fmt::format("{}: calc {} cpu {}", label, ns, op.stream));
    after(label, before);
  }

  double us_of(const programs::StreamOp& op) const {
    if (const auto* host = std::get_if<programs::HostWork>(&op.work)) return host->us;
    std::optional<double> us;
    if (const auto* kernel = std::get_if<programs::KernelWork>(&op.work)) us = kernel->measured_us;
    if (const auto* copy = std::get_if<programs::CopyWork>(&op.work)) us = copy->measured_us;
    if (!us)
      throw InputError(fmt::format("'{}' has no time, which GOAL needs", programs_.names[op.name].substr(0, 80)),
                       name_);
    return *us;
  }

  /// Returns the first tag of `count` operations in a dimension, which both ends count alike. They come again after
  /// 2^20, when those with the same tag are in order.
  std::uint32_t next_tags(std::uint32_t dimension, bool receives, std::size_t count) {
    std::uint64_t& used = tags_[{dimension, receives}];
    const std::uint64_t first = used;
    used += count;
    return static_cast<std::uint32_t>(first & kTagMask);
  }
  static std::uint32_t tag_of(std::uint32_t dimension, std::uint32_t first, std::uint32_t number) {
    return dimension << kTagBits | ((first + number) & kTagMask);
  }

  void write_transfer(const std::string& label, const Communication& call, std::uint32_t stream,
                      const std::vector<std::uint32_t>& before) {
    const Places::Place place = places_.of(rank_, call.dimension, call.receives);
    const std::uint32_t peer = places_.ranks(place)[call.receives ? 0 : 1];
    const std::uint32_t tag = tag_of(call.dimension, next_tags(call.dimension, call.receives, 1), 0);
    line(fmt::format("{}: {} {}b {} {} tag {} cpu {}", label, call.receives ? "recv" : "send", call.bytes,
                     call.receives ? "from" : "to", peer, tag, stream));
    after(label, before);
  }

  void write_collective(const std::string& label, const Communication& call, std::uint32_t stream,
                        const std::vector<std::uint32_t>& before) {
    const Places::Place place = places_.of(rank_, call.dimension, false);
    const std::vector<std::uint32_t>& ranks = places_.ranks(place);
    const Expanded& expanded = expansions_.of(call, static_cast<std::uint32_t>(ranks.size()));
    const std::uint32_t first = next_tags(call.dimension, false, expanded.before.size());
    const std::string begin = label + "b";
    line(fmt::format("{}: calc 0 cpu {}", begin, stream));
    after(begin, before);
    std::vector<std::string> all;
    for (std::uint32_t transfer = 0; transfer < expanded.before.size(); ++transfer) {
      const auto [from, to] = expanded.ends(transfer);
      if (from != place.member && to != place.member) continue;
      const bool receives = to == place.member;
      const std::string name = fmt::format("{}t{}", label, transfer);
      line(fmt::format("{}: {} {}b {} {} tag {} cpu {}", name, receives ? "recv" : "send",
                       expanded.dag.transfers[transfer].bytes, receives ? "from" : "to", ranks[receives ? from : to],
                       tag_of(call.dimension, first, transfer), stream));
      line(fmt::format("{} requires {}", name, begin));
      for (const std::uint32_t earlier : expanded.before[transfer]) {
        const auto [earlier_from, earlier_to] = expanded.ends(earlier);
        if (earlier_from == place.member || earlier_to == place.member)
          line(fmt::format("{} requires {}t{}", name, label, earlier));
        else if (!receives && earlier_from != to && earlier_to != to)
          throw InputError("has a collective whose member waits for a transfer of others, which GOAL cannot say",
                           name_);
      }
      all.push_back(name);
    }
    line(fmt::format("{}: calc 0 cpu {}", label, stream));
    line(fmt::format("{} requires {}", label, begin));
    for (const std::string& name : all) line(fmt::format("{} requires {}", label, name));
  }

  const programs::StreamPrograms& programs_;
  const Places& places_;
  Expansions& expansions_;
  std::uint32_t rank_;
  const std::string& name_;
  std::ostream& out_;
  std::size_t& lines_;
  programs::Rounding rounding_;
  std::map<std::pair<std::uint32_t, bool>, std::uint64_t> tags_;  // used, by dimension and end
};

}  // namespace

std::vector<std::string> write_goal(std::ostream& out, const programs::StreamPrograms& programs,
                                    const std::string& name, const GoalAlgorithms& algorithms) {
  const auto ranks = static_cast<std::uint32_t>(programs.ranks.program_of_rank.size());
  if (programs.ranks.dimensions.size() >= kMaxDimensions)
    throw InputError(fmt::format("has more than {} dimensions, and GOAL no tags for them", kMaxDimensions - 1), name);
  const Places places(programs);
  Expansions expansions(algorithms, name);
  out << fmt::format("num_ranks {}\n", ranks);
  std::size_t lines = 0;
  std::vector<programs::Rounding> rounded;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    RankWriter writer(programs, places, expansions, rank, name, out, lines);
    writer.write();
    rounded.push_back(writer.rounding());
  }
  std::vector<std::string> account{"kernels, copies and work of hosts are calc, without names and bytes"};
  if (const std::string text = expansions.text(); !text.empty()) account.push_back(text);
  if (const std::string text = programs::rounding_text(rounded, "whole nanoseconds"); !text.empty())
    account.push_back(text);
  if (const std::string text = programs::left_out_text(programs); !text.empty()) account.push_back(text);
  return account;
}

std::string goal_text(const programs::StreamPrograms& programs, const std::string& name,
                      const GoalAlgorithms& algorithms) {
  std::ostringstream text;
  write_goal(text, programs, name, algorithms);
  return std::move(text).str();
}

}  // namespace manyworlds::experiments::goal
