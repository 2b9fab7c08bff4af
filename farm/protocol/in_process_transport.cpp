#include "farm/protocol/in_process_transport.hpp"

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::farm {

class InProcessNetwork::Endpoint final : public MessageTransport {
 public:
  Endpoint(InProcessNetwork& network, int number) : network_(network), number_(number) {}

  int self() const override { return number_; }
  int size() const override { return static_cast<int>(network_.endpoints_.size()); }
  void send(int to, std::string message) override { network_.send(number_, to, std::move(message)); }
  std::optional<Envelope> receive() override {
    if (inbox.empty() || inbox.begin()->first.first > network_.now_ms_) return std::nullopt;
    Envelope first = std::move(inbox.begin()->second);
    inbox.erase(inbox.begin());
    return first;
  }
  bool flushed() override { return true; }

  bool dead = false, disconnected = false;
  std::map<std::pair<std::int64_t, std::uint64_t>, Envelope> inbox;  // indexed by (time due, order of sending)

 private:
  InProcessNetwork& network_;
  int number_;
};

InProcessNetwork::InProcessNetwork(int endpoints, MessageFaults faults) : faults_(faults) {
  MANYWORLDS_CHECK(endpoints > 0, "{} parties", endpoints);
  for (int number = 0; number < endpoints; ++number) endpoints_.push_back(std::make_unique<Endpoint>(*this, number));
}

InProcessNetwork::~InProcessNetwork() = default;

MessageTransport& InProcessNetwork::endpoint(int number) {
  return *endpoints_.at(static_cast<std::size_t>(number));
}

void InProcessNetwork::kill(int number) {
  Endpoint& endpoint = *endpoints_.at(static_cast<std::size_t>(number));
  endpoint.dead = true;
  endpoint.inbox.clear();
}

void InProcessNetwork::revive(int number) {
  endpoints_.at(static_cast<std::size_t>(number))->dead = false;
}

void InProcessNetwork::disconnect(int number) {
  endpoints_.at(static_cast<std::size_t>(number))->disconnected = true;
}

void InProcessNetwork::reconnect(int number) {
  endpoints_.at(static_cast<std::size_t>(number))->disconnected = false;
}

double InProcessNetwork::random() {
  return core::unit_interval(core::decision_hash(faults_.seed, ++draws_, 0));
}

void InProcessNetwork::send(int from, int to, std::string message) {
  Endpoint& target = *endpoints_.at(static_cast<std::size_t>(to));
  const Endpoint& source = *endpoints_[static_cast<std::size_t>(from)];
  if (source.dead || target.dead || (from != to && (source.disconnected || target.disconnected))) return;
  if (faults_.loss_probability > 0 && random() < faults_.loss_probability) return;
  const int copies = faults_.duplication_probability > 0 && random() < faults_.duplication_probability ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    std::int64_t due = now_ms_ + faults_.delay_min_ms;
    if (const auto spread = faults_.delay_max_ms - faults_.delay_min_ms; spread > 0)
      due += static_cast<std::int64_t>(random() * static_cast<double>(spread + 1));
    target.inbox.emplace(std::pair{due, sent_++}, Envelope{from, message});
  }
}

}  // namespace manyworlds::farm
