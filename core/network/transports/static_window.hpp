// A fixed number of bytes in flight per transfer: the sender without congestion control, held back by its window and by
// pauses alone.
#pragma once

#include "core/network/engine/protocol.hpp"

namespace manyworlds::core::network {

struct Transport;

struct StaticWindow {
  struct Parameters {
    std::int64_t window_bytes = 0;
  };
  static Parameters of(const Transport& transport);
  static constexpr Wants kWants{};

  std::int64_t window = 0;

  void start(const Parameters& with, const PathFacts&, Time) { window = with.window_bytes; }
  std::int64_t window_bytes() const { return window; }
  Time gap(std::int64_t) const { return 0; }
  void sent(const Parameters&, std::int64_t, Time) {}
  void acknowledged(const Parameters&, const Feedback&) {}
  void notified(const Parameters&, Time) {}
  void lost(const Parameters&, Time) {}
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}
  template <class V>
  static void words(StaticWindow&, V&&) {}  // its window follows from the transport
};
static_assert(Protocol<StaticWindow>);

}  // namespace manyworlds::core::network
