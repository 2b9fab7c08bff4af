#include "experiments/records/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;
using core::collective::Kind;

std::string place_of(const RankRecord& record, std::uint32_t line) {
  return fmt::format("{}:{}", record.file, line);
}

/// The calls of one member of a communicator: its collectives, and its transfers by the other end.
struct MemberCalls {
  std::vector<const Call*> collectives;
  std::map<std::int32_t, std::vector<const Call*>> sends, receives;
};

class Comparison {
 public:
  Comparison(const std::vector<RankRecord>& records, const Words& words) : records_(records), words_(words) {
    for (const RankRecord& record : records) {
      auto& of = calls_.emplace_back(record.communicators.size());
      for (const Call& call : record.calls) {
        if (call.kind != CallKind::collective && call.kind != CallKind::send && call.kind != CallKind::receive)
          continue;
        MemberCalls& member = of[static_cast<std::size_t>(call.number)];
        const Communication& what = record.communications[call.detail];
        if (what.count == 0) continue;
        if (call.kind == CallKind::collective)
          member.collectives.push_back(&call);
        else
          (call.kind == CallKind::send ? member.sends : member.receives)[what.peer].push_back(&call);
      }
    }
  }

  void check(const JoinedCommunicator& communicator) {
    std::int32_t first = kNone;
    for (std::size_t member = 0; member < communicator.records.size(); ++member) {
      const std::int32_t record = communicator.records[member];
      if (record == kNone) continue;
      if (first == kNone) first = static_cast<std::int32_t>(member);
      compare_collectives(communicator, static_cast<std::size_t>(first), member);
    }
    for (std::size_t from = 0; from < communicator.records.size(); ++from)
      for (std::size_t to = 0; to < communicator.records.size(); ++to)
        if (communicator.records[from] != kNone && communicator.records[to] != kNone)
          compare_transfers(communicator, from, to);
  }

 private:
  const MemberCalls& calls_of(const JoinedCommunicator& of, std::size_t member) const {
    return calls_[static_cast<std::size_t>(of.records[member])][static_cast<std::size_t>(of.numbers[member])];
  }
  const RankRecord& record_of(const JoinedCommunicator& of, std::size_t member) const {
    return records_[static_cast<std::size_t>(of.records[member])];
  }

  std::string text_of(const RankRecord& record, const Call& call) const {
    const Communication& what = record.communications[call.detail];
    std::string text = fmt::format("{} of {} {}", words_.text(call.name), what.count, words_.text(what.dtype));
    if (what.kind == Kind::all_reduce || what.kind == Kind::reduce_scatter || what.kind == Kind::reduce)
      text += fmt::format(" ({})", words_.text(what.reduction));
    if (what.kind == Kind::broadcast || what.kind == Kind::reduce) text += fmt::format(" with root {}", what.peer);
    return text;
  }
  bool are_same(const RankRecord& one, const Call& a, const RankRecord& other, const Call& b) const {
    const Communication &x = one.communications[a.detail], &y = other.communications[b.detail];
    return x.kind == y.kind && x.count == y.count && x.dtype == y.dtype && x.reduction == y.reduction &&
           x.peer == y.peer;
  }

  void compare_collectives(const JoinedCommunicator& of, std::size_t first, std::size_t other) const {
    const RankRecord &a = record_of(of, first), &b = record_of(of, other);
    const std::vector<const Call*>&x = calls_of(of, first).collectives, &y = calls_of(of, other).collectives;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!are_same(a, *x[i], b, *y[i]))
        throw InputError(
            fmt::format(
                "rank {}'s {} is number {} in communicator '{}', where rank {} has {} ({}): all of its ranks must "
                "call the same",
                b.rank, text_of(b, *y[i]), i + 1, of.key, a.rank, text_of(a, *x[i]), place_of(a, x[i]->line)),
            b.file, static_cast<int>(y[i]->line));
    if (x.size() == y.size()) return;
    const bool has_first_more = x.size() > y.size();
    const RankRecord &more = has_first_more ? a : b, &fewer = has_first_more ? b : a;
    const Call& extra = has_first_more ? *x[y.size()] : *y[x.size()];
    throw InputError(
        fmt::format("rank {}'s {} is number {} in communicator '{}', in which rank {} has {} ({}{}): all of "
                    "its ranks must call the same",
                    more.rank, text_of(more, extra), std::min(x.size(), y.size()) + 1, of.key, fewer.rank,
                    std::min(x.size(), y.size()), fewer.file,
                    fewer.has_end ? "" : ", which was ended before the program's end"),
        more.file, static_cast<int>(extra.line));
  }

  void compare_transfers(const JoinedCommunicator& of, std::size_t from, std::size_t to) const {
    static const std::vector<const Call*> none;
    const RankRecord &sender = record_of(of, from), &receiver = record_of(of, to);
    const auto sent = calls_of(of, from).sends.find(static_cast<std::int32_t>(to));
    const auto received = calls_of(of, to).receives.find(static_cast<std::int32_t>(from));
    const std::vector<const Call*>& x = sent == calls_of(of, from).sends.end() ? none : sent->second;
    const std::vector<const Call*>& y = received == calls_of(of, to).receives.end() ? none : received->second;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (x[i]->bytes != y[i]->bytes)
        throw InputError(
            fmt::format(
                "rank {}'s {} is number {} from rank {} to rank {} in communicator '{}', and that which receives it "
                "is {} ({}): both must have one size",
                sender.rank, text_of(sender, *x[i]), i + 1, sender.rank, receiver.rank, of.key,
                text_of(receiver, *y[i]), place_of(receiver, y[i]->line)),
            sender.file, static_cast<int>(x[i]->line));
    if (x.size() == y.size()) return;
    const bool is_sent = x.size() > y.size();
    const RankRecord &more = is_sent ? sender : receiver, &fewer = is_sent ? receiver : sender;
    const Call& extra = is_sent ? *x[y.size()] : *y[x.size()];
    throw InputError(
        fmt::format("rank {}'s {} is number {} {} rank {} in communicator '{}', and rank {} {} {} ({})", more.rank,
                    text_of(more, extra), std::min(x.size(), y.size()) + 1, is_sent ? "to" : "from", fewer.rank, of.key,
                    fewer.rank, is_sent ? "receives" : "sends", std::min(x.size(), y.size()), fewer.file),
        more.file, static_cast<int>(extra.line));
  }

  const std::vector<RankRecord>& records_;
  const Words& words_;
  std::vector<std::vector<MemberCalls>> calls_;  // by record and communicator
};

}  // namespace

std::vector<JoinedCommunicator> join_communicators(const std::vector<RankRecord>& records) {
  std::size_t most = 0;
  for (const RankRecord& record : records) most = std::max(most, record.communicators.size());
  std::map<std::string, std::size_t> known;
  std::vector<JoinedCommunicator> joined;
  for (std::size_t number = 0; number < most; ++number)
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (number >= records[i].communicators.size()) continue;
      const OpenedCommunicator& opened = records[i].communicators[number];
      const auto fail = [&](const std::string& what) {
        throw InputError(what, records[i].file, static_cast<int>(opened.line));
      };
      const auto [at, is_new] = known.try_emplace(opened.key, joined.size());
      if (is_new) {
        joined.push_back({opened.key, {}, {}});
        joined.back().records.resize(static_cast<std::size_t>(opened.size), kNone);
        joined.back().numbers.resize(static_cast<std::size_t>(opened.size), kNone);
      }
      JoinedCommunicator& of = joined[at->second];
      const auto in_rank = static_cast<std::size_t>(opened.in_rank);
      if (of.records.size() != static_cast<std::size_t>(opened.size))
        fail(fmt::format("communicator '{}' has {} ranks here, and {} for another rank", opened.key, opened.size,
                         of.records.size()));
      if (of.records[in_rank] != kNone)
        fail(fmt::format("rank {} of communicator '{}' is rank {} of the job, and rank {} too", in_rank, opened.key,
                         records[static_cast<std::size_t>(of.records[in_rank])].rank, records[i].rank));
      of.records[in_rank] = static_cast<std::int32_t>(i);
      of.numbers[in_rank] = static_cast<std::int32_t>(number);
    }
  if (records.empty() || records.size() < static_cast<std::size_t>(records.front().world)) return joined;
  for (const JoinedCommunicator& of : joined)
    for (std::size_t member = 0; member < of.records.size(); ++member) {
      if (of.records[member] != kNone) continue;
      const auto someone = static_cast<std::size_t>(
          std::find_if(of.records.begin(), of.records.end(), [](std::int32_t one) { return one != kNone; }) -
          of.records.begin());
      const RankRecord& record = records[static_cast<std::size_t>(of.records[someone])];
      throw InputError(fmt::format("communicator '{}' has {} ranks, and no rank of the job opens it as its rank {}",
                                   of.key, of.records.size(), member),
                       record.file,
                       static_cast<int>(record.communicators[static_cast<std::size_t>(of.numbers[someone])].line));
    }
  return joined;
}

void check_calls(const std::vector<RankRecord>& records, const std::vector<JoinedCommunicator>& communicators,
                 const Words& words) {
  Comparison comparison(records, words);
  for (const JoinedCommunicator& one : communicators) comparison.check(one);
}

}  // namespace manyworlds::experiments::captured
