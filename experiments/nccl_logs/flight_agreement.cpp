#include "experiments/nccl_logs/flight_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/escape.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::collective::Kind;
using Calls = std::vector<const RecordedCall*>;
/// A collective of a group: its sequence number, which coalesced ones share, and its place among those.
using Sequence = std::pair<std::int64_t, std::size_t>;

bool is_transfer(const RecordedCall& call) {
  return call.kind == Kind::send;
}

/// Whether a call is of a collective, known here or not: not the end of a batch, nor what makes or ends a group.
bool is_collective(const RecordedCall& call) {
  return !is_transfer(call) && call.name != "coalesced" && call.name != "split" && call.name != "new_window" &&
         call.name != "finalize";
}

/// Returns what two ranks' calls of one collective must have in common. All-to-alls may differ in bytes.
std::string signature(const RecordedCall& call) {
  const std::string name = core::line_text(call.name);
  return call.kind && call.kind != Kind::all_to_all ? fmt::format("{} of {} bytes", name, call.bytes) : name;
}

const char* name_of(CallState state) {
  return state == CallState::completed ? "completed" : state == CallState::started ? "started" : "scheduled";
}

/// Compares what the members of a group called in it.
class GroupComparison {
 public:
  GroupComparison(const RecordedGroup& group, const std::vector<const FlightDump*>& dumps, Agreement& to)
      : dumps_(dumps), to_(to), calls_(group.ranks.size()) {
    job_.group = group;
    job_.collectives.resize(group.ranks.size()), job_.transfers.resize(group.ranks.size());
  }

  void add(std::size_t member, const RecordedCall& call) { calls_[member].push_back(&call); }

  void compare() {
    find_start();
    compare_collectives();
    compare_transfers();
    tell_unfinished();
    to_.groups.push_back(std::move(job_));
  }

 private:
  std::size_t members() const { return calls_.size(); }
  std::string name() const {
    const RecordedGroup& group = job_.group;
    const std::string described =
        group.description.empty() || group.description == "undefined" ? "" : fmt::format(" ({})", group.description);
    return core::line_text(fmt::format("group {}{} of ranks {}", group.name, described, ranks_text(group.ranks)));
  }
  static std::string ranks_text(std::vector<std::uint32_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    return programs::ranks_text(ranks);
  }
  std::string ranks_of(const std::vector<std::size_t>& members) const {
    std::vector<std::uint32_t> ranks;
    for (const std::size_t member : members) ranks.push_back(job_.group.ranks[member]);
    const char* word = ranks.size() == 1 ? "rank" : "ranks";
    return fmt::format("{} {}", word, ranks_text(std::move(ranks)));
  }

  /// Finds the first collective that all dumps reach back to.
  void find_start() {
    for (std::size_t member = 0; member < members(); ++member) {
      if (dumps_[member] == nullptr || !dumps_[member]->has_wrapped()) continue;
      const auto first = std::find_if(calls_[member].begin(), calls_[member].end(),
                                      [](const RecordedCall* call) { return is_collective(*call); });
      if (first != calls_[member].end()) start_ = std::max(start_, (*first)->sequence);
    }
  }

  void compare_collectives() {
    std::map<Sequence, Calls> all;  // by member
    for (std::size_t member = 0; member < members(); ++member) {
      Sequence last{-1, 0};
      for (const RecordedCall* call : calls_[member]) {
        if (!is_collective(*call)) continue;
        last = {call->sequence, call->sequence == last.first ? last.second + 1 : 0};
        if (call->sequence < start_) {
          ++to_.overwritten;
          continue;
        }
        auto [known, is_new] = all.try_emplace(last);
        if (is_new) known->second.resize(members());
        known->second[member] = call;
        job_.collectives[member].push_back(call);
      }
    }
    std::int64_t different = 0;
    std::string first;
    for (const auto& [sequence, calls] : all) {
      const std::string difference = difference_of(sequence, calls);
      if (difference.empty()) continue;
      if (different++ == 0) first = difference;
    }
    if (different > 1) first += fmt::format("; later ones that differ: {}", different - 1);
    if (different > 0) to_.differences.push_back(fmt::format("{}: {}", name(), first));
  }

  /// Returns how the calls of one collective differ; empty if they do not.
  std::string difference_of(const Sequence& sequence, const Calls& calls) const {
    std::map<std::string, std::vector<std::size_t>> by_signature;
    std::vector<std::size_t> lacking;
    for (std::size_t member = 0; member < members(); ++member) {
      if (dumps_[member] == nullptr) continue;
      if (calls[member] != nullptr)
        by_signature[signature(*calls[member])].push_back(member);
      else
        lacking.push_back(member);
    }
    if (lacking.empty() && by_signature.size() == 1) return {};
    std::string text = fmt::format("collective {} differs:", sequence.first);
    for (const auto& [what, who] : by_signature)
      text += fmt::format("{} {} on {}", by_signature.begin()->first == what ? "" : ",", what, ranks_of(who));
    if (!lacking.empty())
      text += fmt::format(", missing on {}, where the last is {}", ranks_of(lacking), last_of(lacking.front()));
    return text;
  }

  std::string last_of(std::size_t member) const {
    const auto last = std::find_if(calls_[member].rbegin(), calls_[member].rend(),
                                   [](const RecordedCall* call) { return is_collective(*call); });
    if (last == calls_[member].rend()) return "none";
    return fmt::format("{} ({}, {})", (*last)->sequence, core::line_text((*last)->name), name_of((*last)->state));
  }

  void compare_transfers() {
    std::map<std::pair<std::size_t, std::size_t>, std::pair<Calls, Calls>> pairs;  // sends and receives
    for (std::size_t member = 0; member < members(); ++member)
      for (const RecordedCall* call : calls_[member]) {
        if (!is_transfer(*call)) continue;
        const auto source = static_cast<std::size_t>(call->source),
                   destination = static_cast<std::size_t>(call->destination);
        if (source >= members() || destination >= members() || source == destination ||
            member != (call->receives ? destination : source)) {
          to_.differences.push_back(fmt::format("{}: {} of record {} on {} is from member {} to member {}", name(),
                                                core::line_text(call->name), call->record, ranks_of({member}), source,
                                                destination));
          continue;
        }
        auto& [sends, receives] = pairs[{source, destination}];
        (call->receives ? receives : sends).push_back(call);
      }
    for (auto& [ends, calls] : pairs) compare_pair(ends.first, ends.second, calls.first, calls.second);
    for (std::size_t member = 0; member < members(); ++member)
      std::sort(job_.transfers[member].begin(), job_.transfers[member].end(),
                [](const RecordedCall* a, const RecordedCall* b) { return a->record < b->record; });
  }

  void compare_pair(std::size_t source, std::size_t destination, Calls& sends, Calls& receives) {
    if (dumps_[source] == nullptr || dumps_[destination] == nullptr) return;
    const std::size_t both = std::min(sends.size(), receives.size());
    const std::string pair =
        fmt::format("{}: from rank {} to rank {}", name(), job_.group.ranks[source], job_.group.ranks[destination]);
    if (dumps_[source]->has_wrapped() || dumps_[destination]->has_wrapped()) {
      for (Calls* calls : {&sends, &receives}) {
        to_.overwritten += static_cast<std::int64_t>(calls->size() - both);
        calls->erase(calls->begin(), calls->end() - static_cast<std::ptrdiff_t>(both));
      }
    } else if (sends.size() != receives.size()) {
      to_.differences.push_back(
          fmt::format("{} there are {} sends and {} receives", pair, sends.size(), receives.size()));
    }
    for (std::size_t i = 0; i < both; ++i)
      if (sends[i]->bytes != receives[i]->bytes) {
        to_.differences.push_back(fmt::format("{} send {} of {} has {} bytes, and its receive {}", pair, i + 1, both,
                                              sends[i]->bytes, receives[i]->bytes));
        break;
      }
    for (std::size_t i = 0; i < both; ++i) {
      job_.transfers[source].push_back(sends[i]);
      job_.transfers[destination].push_back(receives[i]);
    }
  }

  /// Tells of the first call that has not completed, and on which ranks it has come how far.
  void tell_unfinished() {
    std::int64_t first = INT64_MAX, count = 0;
    for (const Calls& calls : job_.collectives)
      for (const RecordedCall* call : calls)
        if (call->state != CallState::completed) first = std::min(first, call->sequence), ++count;
    if (count == 0) return;
    std::map<CallState, std::vector<std::size_t>> states;
    std::string what;
    for (std::size_t member = 0; member < members(); ++member)
      for (const RecordedCall* call : job_.collectives[member])
        if (call->sequence == first) {
          what = core::line_text(call->name);
          states[call->state].push_back(member);
          break;
        }
    std::string text;
    for (const auto& [state, who] : states)
      text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", name_of(state), ranks_of(who));
    to_.unfinished.push_back(fmt::format("{}: collective {} ({}) is {}", name(), first, what, text));
  }

  const std::vector<const FlightDump*>& dumps_;  // by member; nullptr: not given
  Agreement& to_;
  std::vector<Calls> calls_;  // by member
  JobGroup job_;
  std::int64_t start_ = 0;  // the first sequence number that is compared
};

}  // namespace

Agreement compare_dumps(const std::vector<FlightDump>& dumps) {
  Agreement result;
  std::map<std::uint32_t, const FlightDump*> by_rank;
  for (const FlightDump& dump : dumps) by_rank.emplace(dump.rank, &dump);
  std::map<RecordedGroup, std::vector<std::pair<const FlightDump*, std::uint32_t>>> groups;
  for (const FlightDump& dump : dumps)
    for (std::uint32_t i = 0; i < dump.groups.size(); ++i) groups[dump.groups[i]].emplace_back(&dump, i);
  for (const auto& [group, users] : groups) {
    std::vector<const FlightDump*> of_members;
    for (const std::uint32_t rank : group.ranks) {
      const auto known = by_rank.find(rank);
      of_members.push_back(known == by_rank.end() ? nullptr : known->second);
    }
    GroupComparison comparison(group, of_members, result);
    for (const auto& [dump, number] : users) {
      const auto member = std::find(group.ranks.begin(), group.ranks.end(), dump->rank);
      if (member == group.ranks.end()) {
        result.differences.push_back(
            fmt::format("rank {} calls group {}, which it is not in", dump->rank, core::line_text(group.name)));
        continue;
      }
      for (const RecordedCall& call : dump->calls)
        if (call.group == number) comparison.add(static_cast<std::size_t>(member - group.ranks.begin()), call);
    }
    comparison.compare();
  }
  return result;
}

}  // namespace manyworlds::experiments::nccl_logs
