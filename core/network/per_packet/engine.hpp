// What the second engine offers, whatever runs at its ends: routes between GPUs of one fabric and transfers in,
// completions out. One call serves many packets, so this is a plain interface; inside, nothing is virtual.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::individual {

class IndividualEngine {
 public:
  virtual ~IndividualEngine() = default;

  /// Over links of the graph there and, if transfers are pinned, back; others take its ends only. Returns its number.
  virtual std::uint32_t add_route(const Route& there, const Route& back) = 0;
  /// Starts a transfer of `bytes` (>= 0; an empty one is a single header) at now(). `order` (< 2^53) ranks it in ties
  /// and is unique among live ones; `entropy` goes into its hashed decisions. Returns its slot, which is used again.
  virtual std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t order, std::uint64_t entropy) = 0;
  /// As Engine::run.
  virtual void run(Time limit, std::vector<std::uint32_t>& completed) = 0;
  virtual Time now() const = 0;
  virtual Time quiet_since() const = 0;
  virtual bool drained() const = 0;
  virtual Counters counters() const = 0;
  virtual std::vector<LinkLoad> loads() const = 0;  // by link
  /// From now on keeps (order, when the sender had every acknowledgement) of transfers acknowledged in band.
  virtual void keep_acknowledgements() = 0;
  virtual const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const = 0;
  virtual std::unique_ptr<IndividualEngine> clone() const = 0;
};

/// An endpoint behind that interface.
template <class Endpoint>
class EngineOf final : public IndividualEngine {
 public:
  explicit EngineOf(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  std::uint32_t add_route(const Route& there, const Route& back) override { return endpoint_.add_route(there, back); }
  std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t order, std::uint64_t entropy) override {
    return endpoint_.start(route, bytes, order, entropy);
  }
  void run(Time limit, std::vector<std::uint32_t>& completed) override { endpoint_.run(limit, completed); }
  Time now() const override { return endpoint_.now(); }
  Time quiet_since() const override { return endpoint_.network().quiet_since(); }
  bool drained() const override { return endpoint_.drained(); }
  Counters counters() const override { return endpoint_.network().counters(); }
  std::vector<LinkLoad> loads() const override { return endpoint_.network().loads(); }
  void keep_acknowledgements() override { endpoint_.keep_acknowledgements(); }
  const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const override {
    return endpoint_.acknowledgements();
  }
  std::unique_ptr<IndividualEngine> clone() const override { return std::make_unique<EngineOf>(*this); }

 private:
  Endpoint endpoint_;
};

}  // namespace manyworlds::core::network::individual
