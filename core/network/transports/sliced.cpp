// The transports whose protocols the sliced engine can do, as one explicit list.
#include "core/network/transports/sliced.hpp"

#include "core/network/time_sliced/sliced_engine_body.hpp"
#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/in_both_engines.hpp"
#include "core/network/transports/static_window.hpp"

namespace manyworlds::core::network {
namespace {

template <SlicedProtocol P>
std::unique_ptr<Engine> make(const Transport& transport) {
  return std::make_unique<SlicedEngine<P>>(transport, parameters_of<P>(transport), transport_type(transport).marks);
}

struct Sliced {
  const char* kind;
  std::unique_ptr<Engine> (*make)(const Transport& transport);
};
constexpr Sliced kSliced[] = {{"dcqcn", make<Dcqcn>}, {"static_window", make<StaticWindow>}};

}  // namespace

std::unique_ptr<Engine> make_running_engine(const Transport& transport) {
  if (!needs_individuals(transport))
    for (const Sliced& sliced : kSliced)
      if (transport.kind == sliced.kind) return sliced.make(transport);
  return make_engine(transport);
}

}  // namespace manyworlds::core::network
