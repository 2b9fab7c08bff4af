// The interface of the per-packet engine, independent of the transport: routes between GPUs of one fabric and transfers
// go in, completions come out. One call covers many packets, so the interface is virtual; no call per packet is.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::per_packet {

class PerPacketEngine {
 public:
  virtual ~PerPacketEngine() = default;

  /// Adds a route given by the links of the graph in both directions and returns its number. Only transports with
  /// pinned paths follow these links; the others use the two end points alone.
  virtual std::uint32_t add_route(const Route& there, const Route& back) = 0;
  /// Starts a transfer of `bytes` (>= 0; an empty one is a single header) at now(). `tie_order` (< 2^53) breaks ties
  /// between simultaneous packets and must be unique among live transfers; `entropy` seeds its hashed decisions.
  /// Returns its slot, which is reused after the transfer ends.
  virtual std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t tie_order,
                              std::uint64_t entropy) = 0;
  /// Runs until the first instant at which transfers complete, at most to `limit`, and appends their slots.
  virtual void run(Time limit, std::vector<std::uint32_t>& completed) = 0;
  virtual Time now() const = 0;
  virtual Time last_activity() const = 0;
  virtual bool drained() const = 0;
  virtual Counters counters() const = 0;
  virtual std::vector<LinkLoad> loads() const = 0;  // by link
  /// Announces, before the first transfer, that links will fail. Then senders on a fabric that otherwise loses nothing
  /// know which packets are missing, and send them again when they have heard nothing for `retransmit`, or when later
  /// packets have been acknowledged; if it is 0, as soon as there are routes that avoid what has failed. Other senders
  /// find out as their transport does.
  virtual void expect_failures(Time retransmit) = 0;
  /// Lets a link fail at now().
  virtual void fail(std::uint32_t link) = 0;
  /// Lets packets take other routes from now on: those of `forwarding`, and of the pinned `routes`, by number, there
  /// and back. What is under way on a pinned path goes on along it. `avoid_all`: no link that has failed is in use.
  virtual void reroute(std::shared_ptr<ForwardingTables> forwarding, const std::vector<std::pair<Route, Route>>& routes,
                       bool avoid_all) = 0;
  /// Records from now on, for each transfer with in-band acknowledgements, its order and the time at which the sender
  /// received the last acknowledgement.
  virtual void record_acknowledgements() = 0;
  virtual const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const = 0;
  virtual std::unique_ptr<PerPacketEngine> clone() const = 0;
};

/// Implements the interface for one endpoint type (CongestionControlled<P> or Eqds).
template <class Endpoint>
class EndpointEngine final : public PerPacketEngine {
 public:
  explicit EndpointEngine(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  std::uint32_t add_route(const Route& there, const Route& back) override { return endpoint_.add_route(there, back); }
  std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t tie_order,
                      std::uint64_t entropy) override {
    return endpoint_.start(route, bytes, tie_order, entropy);
  }
  void run(Time limit, std::vector<std::uint32_t>& completed) override { endpoint_.run(limit, completed); }
  Time now() const override { return endpoint_.now(); }
  Time last_activity() const override { return endpoint_.network().last_activity(); }
  bool drained() const override { return endpoint_.drained(); }
  Counters counters() const override { return endpoint_.network().counters(); }
  std::vector<LinkLoad> loads() const override { return endpoint_.network().loads(); }
  void expect_failures(Time retransmit) override { endpoint_.expect_failures(retransmit); }
  void fail(std::uint32_t link) override { endpoint_.fail(link); }
  void reroute(std::shared_ptr<ForwardingTables> forwarding, const std::vector<std::pair<Route, Route>>& routes,
               bool avoid_all) override {
    endpoint_.reroute(std::move(forwarding), routes, avoid_all);
  }
  void record_acknowledgements() override { endpoint_.record_acknowledgements(); }
  const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const override {
    return endpoint_.acknowledgements();
  }
  std::unique_ptr<PerPacketEngine> clone() const override { return std::make_unique<EndpointEngine>(*this); }

 private:
  Endpoint endpoint_;
};

}  // namespace manyworlds::core::network::per_packet
