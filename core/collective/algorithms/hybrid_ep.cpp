// All-to-all of tokens as expert-parallel libraries carry it out: what a member has for another node goes once, along
// its rail, to the member of its local index there, who hands it on to those of its node while more arrives (DeepEP's
// normal kernels, github.com/deepseek-ai/DeepEP, section "Design"; HybridEP in the same repository). What is for the
// own node goes first. Results come back on the same ways, added up where they meet: as many bytes, so the same DAG
// stands for it.
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::uint32_t kShares = 2;  // of what goes to a node, so that it is handed on while the rest arrives

/// One link after another: what each member sent and received last on its NIC, or on its links inside the node.
class Lane {
 public:
  Lane(DagBuilder& dag, std::uint32_t members) : dag_(dag), sent_(members, kNoNode), received_(members, kNoNode) {}

  /// A round in which `from` sends to `to`, after `before` too.
  std::uint32_t send(std::uint32_t from, std::uint32_t to, const Part& part, std::uint32_t before) {
    const std::uint32_t made =
        dag_.add(from, to, part, Effect::copy, {sent_[from], received_[from], sent_[to], received_[to], before});
    next_.push_back({from, to, made});
    return made;
  }
  void end_round() {
    for (const auto& [from, to, transfer] : next_) sent_[from] = received_[to] = transfer;
    next_.clear();
  }

 private:
  struct Sent {
    std::uint32_t from, to, transfer;
  };
  DagBuilder& dag_;
  std::vector<std::uint32_t> sent_, received_;
  std::vector<Sent> next_;
};

}  // namespace

void add_hybrid_ep(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members, p = shape.per_node, nodes = n / p;
  dag.cut(n, n);
  Lane rails(dag, n), inside(dag, n);
  // What came to each member from the member `back` nodes before it, share by share.
  std::vector<std::vector<std::uint32_t>> came(n);
  for (std::uint32_t ahead = 1; ahead < nodes; ++ahead)
    for (std::uint32_t share = 0; share < kShares; ++share) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t to = (i + ahead * p) % n;
        Part part{i * n + to / p * p, p, 1, share, kShares};
        if (shape.node_bytes > 0) part.bytes = chunk_bytes(shape.node_bytes, kShares, share);
        came[to].push_back(rails.send(i, to, part, kNoNode));
      }
      rails.end_round();
    }
  const auto hand_on = [&](std::uint32_t back, std::uint32_t share, std::uint32_t shares) {
    for (std::uint32_t turn = 1; turn < p; ++turn) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t to = i / p * p + (i + turn) % p, source = (i + n - back * p) % n;
        const std::uint32_t before = back == 0 ? kNoNode : came[i][(back - 1) * kShares + share];
        inside.send(i, to, {source * n + to, 1, 1, share, shares}, before);
      }
      inside.end_round();
    }
  };
  hand_on(0, 0, 1);
  for (std::uint32_t back = 1; back < nodes; ++back)
    for (std::uint32_t share = 0; share < kShares; ++share) hand_on(back, share, kShares);
}

}  // namespace manyworlds::core::collective
