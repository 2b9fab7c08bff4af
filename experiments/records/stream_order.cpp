#include "experiments/records/stream_order.hpp"

#include <algorithm>

namespace manyworlds::experiments::captured {
namespace {

constexpr std::int32_t kLegacy = 0, kPerThread = 1;

std::uint32_t of(const Progress& progress, std::uint32_t stream) {
  return stream < progress.size() ? progress[stream] : 0;
}

void join(Progress& to, const Progress& other) {
  if (to.size() < other.size()) to.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) to[i] = std::max(to[i], other[i]);
}

void set(Progress& to, std::uint32_t stream, std::uint32_t count) {
  if (to.size() <= stream) to.resize(stream + 1);
  to[stream] = count;
}

}  // namespace

void StreamOrder::set_non_blocking(std::int32_t stream) {
  non_blocking_[stream] = true;
}

std::uint32_t StreamOrder::index_of(const StreamKey& key) {
  const auto [known, is_new] = indices_.try_emplace(key, static_cast<std::uint32_t>(streams_.size()));
  if (is_new) {
    keys_.push_back(key);
    Stream& stream = streams_.emplace_back();
    stream.is_legacy = key.kind == StreamKey::Kind::device && key.number == kLegacy && key.lane == 0;
    stream.is_blocking = key.kind == StreamKey::Kind::device && key.lane == 0 && !stream.is_legacy &&
                         non_blocking_.count(key.number) == 0;
  }
  return known->second;
}

std::uint32_t StreamOrder::device_stream(std::int32_t number, std::int32_t thread, std::int32_t lane) {
  return index_of({StreamKey::Kind::device, number, number == kPerThread ? thread : 0, lane});
}

Progress& StreamOrder::host(std::int32_t thread) {
  return hosts_[thread];
}

void StreamOrder::touch(std::uint32_t stream, std::int32_t thread) {
  Stream& to = streams_[stream];
  if (to.is_legacy) {
    for (const Stream& other : streams_)
      if (other.is_blocking) join(to.done, other.done);
  } else if (to.is_blocking) {
    const auto legacy = indices_.find({StreamKey::Kind::device, kLegacy, 0, 0});
    if (legacy != indices_.end()) join(to.done, streams_[legacy->second].done);
  }
  join(to.done, host(thread));
}

StreamOrder::Issued StreamOrder::add(std::uint32_t number) {
  Stream& stream = streams_[number];
  Issued issued;
  issued.stream = number;
  for (std::uint32_t other = 0; other < stream.done.size(); ++other)
    if (other != number && stream.done[other] > of(stream.implied, other))
      issued.after.push_back(streams_[other].operations[stream.done[other] - 1]);
  // What another of them waits for itself need not stand there.
  std::vector<std::uint32_t> needed;
  for (std::uint32_t other = 0, i = 0; other < stream.done.size(); ++other) {
    if (other == number || stream.done[other] <= of(stream.implied, other)) continue;
    const std::uint32_t operation = issued.after[i++];
    const bool is_implied = std::any_of(issued.after.begin(), issued.after.end(), [&](std::uint32_t by) {
      return by != operation && of(of_operation_[by], other) >= stream.done[other];
    });
    if (!is_implied) needed.push_back(operation);
  }
  std::sort(needed.begin(), needed.end());
  issued.after = std::move(needed);
  stream.operations.push_back(static_cast<std::uint32_t>(of_operation_.size()));
  set(stream.done, number, static_cast<std::uint32_t>(stream.operations.size()));
  stream.implied = stream.done;
  of_operation_.push_back(stream.done);
  return issued;
}

StreamOrder::Issued StreamOrder::issue(std::int32_t stream, std::int32_t thread) {
  const std::uint32_t number = device_stream(stream, thread);
  touch(number, thread);
  return add(number);
}

StreamOrder::Issued StreamOrder::issue_host(std::int32_t thread) {
  const std::uint32_t number = index_of({StreamKey::Kind::host, 0, thread, 0});
  join(streams_[number].done, host(thread));
  Issued issued = add(number);
  join(host(thread), streams_[number].done);
  return issued;
}

void StreamOrder::record_event(std::int32_t event, std::int32_t stream, std::int32_t thread) {
  const std::uint32_t number = device_stream(stream, thread);
  touch(number, thread);
  events_[event] = std::make_shared<const Progress>(streams_[number].done);
}

void StreamOrder::wait_event(std::int32_t event, std::int32_t stream, std::int32_t thread) {
  const std::uint32_t number = device_stream(stream, thread);
  touch(number, thread);
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) join(streams_[number].done, *recorded->second);
}

void StreamOrder::synchronise_stream(std::int32_t stream, std::int32_t thread) {
  const std::uint32_t number = device_stream(stream, thread);
  touch(number, thread);
  join(host(thread), streams_[number].done);
}

void StreamOrder::synchronise_event(std::int32_t event, std::int32_t thread) {
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) join(host(thread), *recorded->second);
}

void StreamOrder::synchronise_device(std::int32_t thread) {
  for (std::uint32_t number = 0; number < streams_.size(); ++number)
    if (keys_[number].kind == StreamKey::Kind::device) join(host(thread), streams_[number].done);
}

void StreamOrder::await_last(std::int32_t stream, std::int32_t thread) {
  join(host(thread), streams_[device_stream(stream, thread)].done);
}

std::vector<StreamOrder::Issued> StreamOrder::issue_group(const std::vector<Member>& members, std::int32_t thread) {
  Progress begin;
  std::vector<std::uint32_t> streams;
  for (const Member& member : members) {
    const std::uint32_t number = device_stream(member.stream, thread);
    streams.push_back(number);
    touch(number, thread);
    join(begin, streams_[number].done);
    join(begin, communicators_[member.communicator]);
  }
  std::vector<Issued> issued;
  Progress end = begin;
  for (const Member& member : members) {
    const std::uint32_t number = device_stream(member.stream, thread, member.lane);
    join(streams_[number].done, begin);
    issued.push_back(add(number));
    join(end, streams_[number].done);
  }
  for (const std::uint32_t number : streams) join(streams_[number].done, end);
  for (const Member& member : members) communicators_[member.communicator] = end;
  return issued;
}

bool StreamOrder::is_idle(std::int32_t thread) const {
  const auto waited = hosts_.find(thread);
  const Progress none;
  const Progress& known = waited == hosts_.end() ? none : waited->second;
  for (std::uint32_t number = 0; number < streams_.size(); ++number)
    if (keys_[number].kind == StreamKey::Kind::device && streams_[number].operations.size() > of(known, number))
      return false;
  return true;
}

}  // namespace manyworlds::experiments::captured
