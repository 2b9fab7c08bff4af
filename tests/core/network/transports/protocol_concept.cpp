// What a transport protocol must have, held by the concept.
#include <catch2/catch.hpp>

#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/static_window.hpp"

using namespace manyworlds::core::network;

namespace {

template <class P>
struct WithState : P {};

template <class P>
struct WithoutState : P {
  template <class V>
  static void visit_state(WithoutState&, V&&) = delete;
};

}  // namespace

TEMPLATE_TEST_CASE("a sender whose state cannot be visited is no transport protocol", "", StaticWindow, Dcqcn) {
  STATIC_REQUIRE(SenderProtocol<TestType>);
  STATIC_REQUIRE(SenderProtocol<WithState<TestType>>);  // a control: it is the visit alone that is missing below
  STATIC_REQUIRE_FALSE(SenderProtocol<WithoutState<TestType>>);
}
