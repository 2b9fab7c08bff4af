// The explicit list of transports whose protocols the time-sliced engine supports.
#include "core/network/transports/time_sliced.hpp"

#include "core/network/time_sliced/time_sliced_engine_body.hpp"
#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/static_window.hpp"
#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {
namespace {

template <TimeSlicedProtocol P>
std::unique_ptr<Engine> make(const Transport& transport) {
  return std::make_unique<TimeSlicedEngine<P>>(transport, parameters_of<P>(transport), transport_type(transport).marks);
}

struct TimeSlicedEntry {
  const char* kind;
  std::unique_ptr<Engine> (*make)(const Transport& transport);
};
constexpr TimeSlicedEntry kTimeSliced[] = {{"dcqcn", make<Dcqcn>}, {"static_window", make<StaticWindow>}};

}  // namespace

std::unique_ptr<Engine> make_long_run_engine(const Transport& transport) {
  if (!needs_per_packet(transport))
    for (const TimeSlicedEntry& entry : kTimeSliced)
      if (transport.kind == entry.kind) return entry.make(transport);
  return make_engine(transport);
}

}  // namespace manyworlds::core::network
