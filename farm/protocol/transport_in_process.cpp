#include "farm/protocol/transport_in_process.hpp"

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::farm {

class InProcessNetwork::Party final : public Transport {
 public:
  Party(InProcessNetwork& network, int number) : network_(network), number_(number) {}

  int self() const override { return number_; }
  int size() const override { return static_cast<int>(network_.parties_.size()); }
  void send(int to, std::string message) override { network_.send(number_, to, std::move(message)); }
  std::optional<Envelope> receive() override {
    if (inbox.empty() || inbox.begin()->first.first > network_.now_ms_) return std::nullopt;
    Envelope first = std::move(inbox.begin()->second);
    inbox.erase(inbox.begin());
    return first;
  }
  bool flushed() override { return true; }

  bool dead = false, cut = false;
  std::map<std::pair<std::int64_t, std::uint64_t>, Envelope> inbox;  // by (due, order of sending)

 private:
  InProcessNetwork& network_;
  int number_;
};

InProcessNetwork::InProcessNetwork(int parties, Faults faults) : faults_(faults) {
  MANYWORLDS_CHECK(parties > 0, "{} parties", parties);
  for (int number = 0; number < parties; ++number) parties_.push_back(std::make_unique<Party>(*this, number));
}

InProcessNetwork::~InProcessNetwork() = default;

Transport& InProcessNetwork::party(int number) {
  return *parties_.at(static_cast<std::size_t>(number));
}

void InProcessNetwork::kill(int number) {
  Party& party = *parties_.at(static_cast<std::size_t>(number));
  party.dead = true;
  party.inbox.clear();
}

void InProcessNetwork::revive(int number) {
  parties_.at(static_cast<std::size_t>(number))->dead = false;
}

void InProcessNetwork::cut(int number) {
  parties_.at(static_cast<std::size_t>(number))->cut = true;
}

void InProcessNetwork::mend(int number) {
  parties_.at(static_cast<std::size_t>(number))->cut = false;
}

double InProcessNetwork::random() {
  return core::unit_interval(core::decision_hash(faults_.seed, ++draws_, 0));
}

void InProcessNetwork::send(int from, int to, std::string message) {
  Party& target = *parties_.at(static_cast<std::size_t>(to));
  const Party& source = *parties_[static_cast<std::size_t>(from)];
  if (source.dead || target.dead || (from != to && (source.cut || target.cut))) return;
  if (faults_.lose > 0 && random() < faults_.lose) return;
  const int copies = faults_.duplicate > 0 && random() < faults_.duplicate ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    std::int64_t due = now_ms_ + faults_.delay_min_ms;
    if (const auto spread = faults_.delay_max_ms - faults_.delay_min_ms; spread > 0)
      due += static_cast<std::int64_t>(random() * static_cast<double>(spread + 1));
    target.inbox.emplace(std::pair{due, sent_++}, Envelope{from, message});
  }
}

}  // namespace manyworlds::farm
