// Of the sliced engine: a port that only forwards, in one slice. Runs that come apart in time are served each in closed
// form; where they overlap, in the pieces between which none of another comes; where a queue may be marked, packet by
// packet. And the pauses that follow from what all ports did.
#pragma once

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/time_sliced/sliced_engine.hpp"

namespace manyworlds::core::network {

template <SlicedProtocol P>
void SlicedEngine<P>::sort_inbox() {
  for (std::size_t i = 1; i < in_.size(); ++i) {
    if (!before(in_[i], in_[i - 1])) continue;
    const Run run = in_[i];
    std::size_t hole = i;
    for (; hole > 0 && before(run, in_[hole - 1]); --hole) in_[hole] = in_[hole - 1];
    in_[hole] = run;
  }
}

/// The run at this place has lost its first packets: where it belongs now.
template <SlicedProtocol P>
void SlicedEngine<P>::keep_order(std::size_t from) {
  if (in_[from].count == 0 || from + 1 == in_.size() || before(in_[from], in_[from + 1])) return;
  const Run run = in_[from];
  for (; from + 1 < in_.size() && before(in_[from + 1], run); ++from) in_[from] = in_[from + 1];
  in_[from] = run;
}

template <SlicedProtocol P>
void SlicedEngine<P>::visit_switch(Port& port) {
  begin_marking(port);
  stuck_ = false;
  while (!port.queue.empty()) {
    Run& run = port.queue[0];
    const std::uint32_t served = burst(port, run, std::max(port.free_at, begin_));
    port.waiting_bytes -= served * bytes_of(run);
    if (served < run.count) {
      first_of(run, served);
      stuck_ = true;
      break;
    }
    port.queue.pop();
  }
  sort_inbox();
  for (std::size_t next = 0; next < in_.size();) {
    Run& run = in_[next];
    std::uint32_t count = run.count;
    if (marking_) {
      count = 1;
    } else if (count > 1 && next + 1 < in_.size()) {  // those before any of another
      const Run& other = in_[next + 1];
      if (run.last() >= other.at) {
        count = static_cast<std::uint32_t>((other.at - run.at + run.gap - 1) / run.gap);
        if (count == 0 || (run.at + count * run.gap == other.at && flows_[run.slot].order < flows_[other.slot].order))
          ++count;
      }
    }
    Run piece = first_of(run, count);
    if (marking_) note_waiting(port, piece);
    serve(port, piece);
    if (run.count == 0)
      ++next;
    else
      keep_order(next);
  }
  if (marking_ && port.queue.empty()) port.mark_error = 0;
}

/// Packets that come to the port while nothing else does.
template <SlicedProtocol P>
void SlicedEngine<P>::serve(Port& port, Run run) {
  const Time sending = sending_ps(port, run);
  while (run.count > 0) {
    if (stuck_) {
      change(run, 1);
      return keep(port, run);
    }
    Time begins = std::max(run.at, port.free_at);
    if (begins == run.at && port.toggles.empty() && !port.paused && (run.gap >= sending || run.count == 1)) {
      port.free_at = run.last() + sending;
      return send(port, run);  // all as they come
    }
    if (begins < end_) begins = clear_from(port, begins);
    if (begins == run.at) {
      port.free_at = begins + sending;
      send(port, first_of(run, 1));
      continue;
    }
    if (run.count == 1 && begins < end_) return serve_later(port, run, begins, sending);
    // The first waits, and of the others those that come before what is in front of them is gone.
    std::uint32_t waiting = run.count;
    if (begins < end_ && run.count > 1) {
      if (!port.toggles.empty())
        waiting = 1;
      else if (run.gap > sending)
        waiting = static_cast<std::uint32_t>(
            std::min<Time>(run.count, (begins - run.at + run.gap - sending - 1) / (run.gap - sending)));
    }
    Run part = first_of(run, waiting);
    change(part, 1);
    const std::uint32_t served = begins < end_ ? burst(port, part, begins) : 0;
    if (served < part.count) {
      stuck_ = true;
      first_of(part, served);
      keep(port, part);
    }
  }
}

/// One packet that waits a little: what burst() does, for the most frequent case.
template <SlicedProtocol P>
void SlicedEngine<P>::serve_later(Port& port, Run run, Time begins, Time sending) {
  if (Port& ingress = ingress_of(run); ingress.may_pause) {
    const std::int64_t bytes = bytes_of(run);
    ingress.added += bytes;
    ingress.changes.push_back({run.at, 0, bytes, 1});
    ingress.changes.push_back({begins, 0, -bytes, 1});
  }
  if (marking_) begun_.push_back({begins, bytes_of(run)});
  run.at = begins;
  port.free_at = begins + sending;
  send(port, run);
}

/// Sends packets back to back from `from` on; how many begin in this visit.
template <SlicedProtocol P>
std::uint32_t SlicedEngine<P>::burst(Port& port, Run run, Time from) {
  const Time sending = sending_ps(port, run);
  std::uint32_t served = 0;
  while (run.count > 0) {
    if (from < end_) from = clear_from(port, from);
    if (from >= end_) break;
    const Time until = port.toggles.empty() ? end_ : std::min(end_, port.toggles.front().at);
    std::uint32_t count = 1;
    if (run.count > 1 && from + sending < until)
      count = static_cast<std::uint32_t>(std::min<Time>(run.count, (until - 1 - from) / sending + 1));
    run.at = from, run.gap = sending;
    const Run sent = first_of(run, count);
    change(sent, -1);
    if (marking_)
      for (std::uint32_t i = 0; i < count; ++i) begun_.push_back({from + i * sending, bytes_of(sent)});
    send(port, sent);
    served += count;
    port.free_at = from += count * sending;
  }
  return served;
}

/// These wait beyond this visit.
template <SlicedProtocol P>
void SlicedEngine<P>::keep(Port& port, const Run& run) {
  port.waiting_bytes += run.count * bytes_of(run);
  SlicedExchange<P>::add_waiting(port.queue, run);
}

// --- marks
// ------------------------------------------------------------------------------------------------------------

/// Whether a packet may be marked in this visit; if so, how much waits is followed packet by packet.
template <SlicedProtocol P>
void SlicedEngine<P>::begin_marking(const Port& port) {
  marking_ = false;
  if (!marks_ || port.spec.leaves_gpu) return;
  std::int64_t most = port.waiting_bytes;
  for (const Run& run : in_) most += run.count * bytes_of(run);
  marking_ = port.mark_error != 0 || most > port.kmin;
  marking_bytes_ = port.waiting_bytes;
  begun_.clear();
  gone_ = 0;
}

/// Marks a packet that comes to a switch's port if it waits there.
template <SlicedProtocol P>
void SlicedEngine<P>::note_waiting(Port& port, Run& packet) {
  if (!stuck_) {
    Time begins = std::max(packet.at, port.free_at);
    if (begins < end_) begins = clear_from(port, begins);
    if (begins == packet.at) return;
    if (begins < end_) port.free_at = begins;  // not before the resume that was just passed
  }
  for (; gone_ < begun_.size() && begun_[gone_].at <= packet.at; ++gone_) marking_bytes_ -= begun_[gone_].bytes;
  if (marking_bytes_ == 0) port.mark_error = 0;  // an idle port remembers nothing
  if (flows_[packet.slot].managed && mark(port, marking_bytes_)) packet.marked = true;
  marking_bytes_ += bytes_of(packet);
}

template <SlicedProtocol P>
bool SlicedEngine<P>::mark(Port& port, std::int64_t waiting) {
  const bool marked = marks_next(port, waiting, transport_.ecn_pmax_ppm);
  counters_.ecn_marks += marked;
  return marked;
}

// --- onward
// -----------------------------------------------------------------------------------------------------------

/// Packets that begin to be sent at run.at, run.at + run.gap, ...
template <SlicedProtocol P>
void SlicedEngine<P>::send(const Port& port, Run run) {
  const Flow& flow = flows_[run.slot];
  counters_.link_hops += run.count;
  run.at += sending_ps(port, run) + port.spec.latency_ps;
  if (++run.hop == flow.hops) return leave_network(run);
  const std::uint32_t next = flow.path[run.hop];
  SlicedExchange<P>::add(ports_[next].inbox, run);
  list(next, run.at);
}

template <SlicedProtocol P>
void SlicedEngine<P>::leave_network(const Run& run) {
  Flow& flow = flows_[run.slot];
  if (run.first == 1) {
    flow.delivered_at = run.at;
    push_heap(ends_, {run.at, run.slot});
  }
  if (P::kWants.notices && run.marked && flow.left > 0)
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const Time delivered = run.at + i * run.gap;
      if (delivered - flow.last_notice < kCnpInterval) continue;
      flow.last_notice = delivered;
      flow.notices.push(delivered + flow.ack_ps);
      list(flow.path[0], delivered + flow.ack_ps);
    }
  if (!acks_matter(flow)) return;
  const bool awaited = flow.blocked && flow.acks.empty();
  add_ack(flow, {run.at + flow.ack_ps, run.gap, run.count});
  if (awaited) list(flow.path[0], run.at + flow.ack_ps);
}

// --- pauses
// -----------------------------------------------------------------------------------------------------------

/// The link over which packets came to the switch where they are.
template <SlicedProtocol P>
auto SlicedEngine<P>::ingress_of(const Run& run) -> Port& {
  const std::uint32_t from = flows_[run.slot].path[run.hop - 1u];
  Port& ingress = ports_[from];
  if (ingress.touched_in != round_) {
    ingress.touched_in = round_;
    ingress.may_pause = ingress.pause_wanted || ingress.ingress_bytes + ingress.slice_bytes > transport_.pfc_xoff_bytes;
    if (ingress.may_pause) touched_.push_back(from);
  }
  return ingress;
}

/// These begin (or cease) to wait there.
template <SlicedProtocol P>
void SlicedEngine<P>::change(const Run& run, std::int64_t sign) {
  Port& ingress = ingress_of(run);
  const std::int64_t bytes = sign * bytes_of(run);
  if (!ingress.may_pause) {
    ingress.ingress_bytes += bytes * run.count;
    return;
  }
  if (sign > 0) ingress.added += bytes * run.count;
  if (!ingress.changes.empty()) {
    Change& last = ingress.changes.back();
    const Time gap = last.count > 1 ? last.gap : run.at - last.at;
    if (last.bytes == bytes && run.at == last.at + last.count * gap && (run.count == 1 || run.gap == gap)) {
      last.gap = gap;
      last.count += run.count;
      return;
    }
  }
  ingress.changes.push_back({run.at, run.gap, bytes, run.count});
}

template <SlicedProtocol P>
void SlicedEngine<P>::settle_pauses() {
  for (const std::uint32_t index : touched_) {
    Port& port = ports_[index];
    if (!port.pause_wanted && port.ingress_bytes + port.added <= transport_.pfc_xoff_bytes)
      for (const Change& change : port.changes) port.ingress_bytes += change.bytes * change.count;
    else
      settle_in_order(port, index);
    port.changes.clear();
    port.added = 0;
  }
  touched_.clear();
}

template <SlicedProtocol P>
void SlicedEngine<P>::settle_in_order(Port& port, std::uint32_t index) {
  flat_.clear();
  for (const Change& change : port.changes)
    for (std::uint32_t i = 0; i < change.count; ++i) flat_.push_back({change.at + i * change.gap, change.bytes});
  std::sort(flat_.begin(), flat_.end(), [](const Begun& a, const Begun& b) {
    return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;  // what goes, then what comes
  });
  for (const auto& [at, bytes] : flat_) {
    port.ingress_bytes += bytes;
    MANYWORLDS_CHECK(port.ingress_bytes <= transport_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                     port.ingress_bytes, transport_.buffer_bytes);
    const bool pause = bytes > 0 && !port.pause_wanted && port.ingress_bytes > transport_.pfc_xoff_bytes;
    const bool resume = bytes < 0 && port.pause_wanted && port.ingress_bytes <= transport_.pfc_xon_bytes;
    if (!pause && !resume) continue;
    port.pause_wanted = pause;
    pausing_ += pause ? 1 : -1;
    counters_.pauses += pause;
    control_until_ = std::max(control_until_, at + port.control_ps);
    port.toggles.push({at + port.control_ps, pause});
    list(index, at + port.control_ps);
  }
}

}  // namespace manyworlds::core::network
