#include "experiments/records/device_calls.hpp"

#include <algorithm>

namespace manyworlds::experiments::captured {

bool is_with_itself(const RankRecord& record, const Call& call) {
  if (call.kind != CallKind::send && call.kind != CallKind::receive) return false;
  return record.communications[call.detail].peer == record.communicators[static_cast<std::size_t>(call.number)].in_rank;
}

bool has_operation(const RankRecord& record, const Call& call) {
  switch (call.kind) {
    case CallKind::launch:
    case CallKind::library_kernel:
      return true;
    case CallKind::product: {
      const programs::GemmShape& shape = record.products[call.detail].shape;
      return shape.m > 0 && shape.n > 0 && shape.k > 0 && shape.batch > 0;
    }
    case CallKind::copy:
      return call.bytes > 0 && !record.copies[call.detail].is_of_host;
    case CallKind::set:
      return call.bytes > 0;
    case CallKind::collective:
      return call.bytes > 0 && record.communicators[static_cast<std::size_t>(call.number)].size > 1;
    case CallKind::send:  // one to itself is a copy, which its receive is part of
      return call.bytes > 0;
    case CallKind::receive:
      return call.bytes > 0 && !is_with_itself(record, call);
    default:
      return false;
  }
}

DeviceCalls::DeviceCalls(const RankRecord& record, Visit visit, bool has_host)
    : record_(record),
      visit_(visit ? std::move(visit) : [](const Call&, const StreamOrder::Issued&) {}),
      has_host_(has_host),
      last_of_group_(record.calls.size()) {
  for (std::size_t i = 0; i < record.streams.size(); ++i)
    if (!record.streams[i].is_blocking) order_.set_non_blocking(static_cast<std::int32_t>(i) + 2);
  for (const Call& call : record.calls)
    if (call.stream >= kInGraphs) order_.set_non_blocking(call.stream);
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> last;
  for (auto i = static_cast<std::uint32_t>(record.calls.size()); i-- > 0;) {
    const Call& call = record.calls[i];
    if (!is_communication(call.kind)) continue;
    last_of_group_[i] = call.group == kNone ? i : last.try_emplace({call.thread, call.group}, i).first->second;
  }
}

void DeviceCalls::take(std::uint32_t number) {
  const Call& call = record_.calls[number];
  if (!is_part_of_step(call.kind)) return;
  const bool waits_first = call.kind == CallKind::synchronise_stream || call.kind == CallKind::synchronise_event ||
                           call.kind == CallKind::synchronise_device || call.kind == CallKind::release;
  const auto run_host = [&] {
    if (has_host_ && !call.is_of_graph) visit_(call, order_.issue_host(call.thread));
  };
  if (!waits_first) run_host();
  switch (call.kind) {
    case CallKind::launch:
    case CallKind::product:
    case CallKind::library_kernel:
    case CallKind::copy:
    case CallKind::set:
      if (has_operation(record_, call)) visit_(call, order_.issue(call.stream, call.thread));
      if (call.kind == CallKind::copy && record_.copies[call.detail].waits) order_.await_last(call.stream, call.thread);
      break;
    case CallKind::collective:
    case CallKind::send:
    case CallKind::receive:
      communicate(number);
      break;
    case CallKind::record_event:
      order_.record_event(call.number, call.stream, call.thread);
      break;
    case CallKind::wait_event:
      order_.wait_event(call.number, call.stream, call.thread);
      break;
    case CallKind::synchronise_stream:
      order_.synchronise_stream(call.stream, call.thread);
      break;
    case CallKind::synchronise_event:
      order_.synchronise_event(call.number, call.thread);
      break;
    case CallKind::synchronise_device:
      order_.synchronise_device(call.thread);
      break;
    case CallKind::release:
      if (call.detail != kWithoutWait) order_.synchronise_device(call.thread);  // as cudaFree does
      break;
    default:
      break;
  }
  if (waits_first) run_host();
}

void DeviceCalls::communicate(std::uint32_t number) {
  const Call& call = record_.calls[number];
  std::vector<std::uint32_t>& calls = waiting_[call.thread];
  calls.push_back(number);
  if (last_of_group_[number] != number) return;
  issue_group(calls);
  waiting_.erase(call.thread);
}

void DeviceCalls::issue_group(const std::vector<std::uint32_t>& calls) {
  std::vector<StreamOrder::Member> members;
  std::vector<const Call*> of;
  std::map<std::int32_t, std::int32_t> transfers;  // by stream, so far
  for (const std::uint32_t number : calls) {
    const Call& call = record_.calls[number];
    if (!has_operation(record_, call)) continue;
    const std::int32_t lane = call.kind == CallKind::collective ? 0 : transfers[call.stream]++;
    members.push_back({call.stream, lane, call.number});
    of.push_back(&call);
  }
  if (members.empty()) return;
  const std::vector<StreamOrder::Issued> issued = order_.issue_group(members, record_.calls[calls.back()].thread);
  for (std::size_t i = 0; i < issued.size(); ++i) visit_(*of[i], issued[i]);
}

}  // namespace manyworlds::experiments::captured
