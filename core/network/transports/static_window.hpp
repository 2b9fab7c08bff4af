// A sender without congestion control: a fixed number of bytes in flight per transfer, limited only by this window and
// by PFC.
#pragma once

#include "core/network/engine/sender_protocol.hpp"

namespace manyworlds::core::network {

struct Transport;

struct StaticWindow {
  struct Parameters {
    std::int64_t window_bytes = 0;
  };
  static Parameters parameters_from(const Transport& transport);
  static constexpr FeedbackNeeds kNeeds{};

  std::int64_t window = 0;

  void start(const Parameters& parameters, const PathInfo&, Time) { window = parameters.window_bytes; }
  std::int64_t window_bytes() const { return window; }
  Time gap(std::int64_t) const { return 0; }
  void sent(const Parameters&, std::int64_t, Time) {}
  void acknowledged(const Parameters&, const Feedback&) {}
  void notified(const Parameters&, Time) {}
  void lost(const Parameters&, Time) {}
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}
  template <class V>
  static void visit_state(StaticWindow&, V&&) {}  // no state: the window follows from the transport
};
static_assert(SenderProtocol<StaticWindow>);

}  // namespace manyworlds::core::network
