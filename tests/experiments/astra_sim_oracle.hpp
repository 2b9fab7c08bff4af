// ASTRA-sim's collectives written plainly: every rank, every chunk, every message, packet by packet as Ring.cc,
// AllToAll.cc, HalvingDoubling.cc and DoubleBinaryTreeAllReduce.cc keep count of them, on a network of single links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

namespace manyworlds::tests::astra_sim_oracle {

using Ns = std::int64_t;

struct Dimension {
  std::string block;  // Ring, FullyConnected, Switch
  int size;
  double gb_per_s, latency_ns;
};

struct Setup {
  std::vector<Dimension> dimensions;
  std::string kind;                     // all_reduce, all_gather, reduce_scatter, all_to_all
  std::vector<std::string> algorithms;  // by dimension
  std::int64_t bytes = 0;
  int splits = 1, active_chunks = 1;
  Ns endpoint_ns = 10;
  double memory_gb_per_s = 100;
  bool local_bandwidth_aware = true, is_aware = false;
  std::vector<int> group;      // empty: all ranks
  std::vector<bool> involved;  // dimensions that hold the group; empty: a group is one ring
  int trees_before = 0;        // that every rank has taken of each dimension
  std::vector<Ns> entries;     // by member
};

class Oracle {
 public:
  explicit Oracle(const Setup& setup) : setup_(setup) {
    for (const Dimension& dimension : setup.dimensions) all_ *= dimension.size;
    members_ = setup.group;
    for (int rank = 0; setup.group.empty() && rank < all_; ++rank) members_.push_back(rank);
    is_group_ = static_cast<int>(members_.size()) < all_ && setup.involved.empty();
    ends_.resize(members_.size());
    ranks_.resize(static_cast<std::size_t>(all_));
  }

  /// Returns when each member has its last chunk.
  std::vector<Ns> run() {
    std::int64_t size = setup_.bytes, chunk = size / setup_.splits;
    if (setup_.kind != "all_gather" && all_ > chunk) chunk = all_, size = chunk * setup_.splits;
    int chunks = 0;
    for (std::int64_t left = size; left > 0; left -= chunk) ++chunks;
    for (std::size_t place = 0; place < members_.size(); ++place)
      at(setup_.entries[place], [this, place, chunks, chunk] {
        const int rank = members_[place];
        Rank& of = ranks_[static_cast<std::size_t>(rank)];
        of.place = place;
        of.left = chunks;
        for (int number = 0; number < chunks; ++number) {
          of.streams.push_back(std::make_unique<Stream>());
          Stream& stream = *of.streams.back();
          stream.rank = rank;
          stream.number = number;
          stream.phases = phases(rank, chunk);
        }
        for (auto& stream : of.streams) of.queues[stream->phases.front().dimension].push_back(stream.get());
        start(of, of.streams.front()->phases.front().dimension);
      });
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      event.what();
    }
    return ends_;
  }

 private:
  struct Event {
    Ns at;
    long number;
    std::function<void()> what;
    bool operator<(const Event& other) const { return std::tie(other.at, other.number) < std::tie(at, number); }
  };
  struct Phase {
    int dimension;
    std::string kind, algorithm;
    std::int64_t bytes;
    std::vector<int> ring;  // the ranks around, this one among them
    int tree = 0;           // which tree of the dimension, in the order in which chunks take them
  };
  struct Node {
    int rank = -1;
    Node *parent = nullptr, *left = nullptr, *right = nullptr;
  };
  struct Packet {
    int to, from;
    std::int64_t bytes;
  };
  struct Stream {
    int rank = 0, number = 0;
    std::deque<Phase> phases;
    // Of the phase that runs:
    Phase now;
    int n = 0, place = 0, at_once = 1, sends = 0, zero = 0, others = 0, free = 0, received = 0, offset = 0;
    bool toggle = false;
    double factor = 2;
    std::int64_t message = 0;
    int to = 0, from = 0;
    std::deque<Packet> packets;
  };
  struct Rank {
    std::size_t place = 0;
    int left = 0;
    std::vector<std::unique_ptr<Stream>> streams;
    std::map<int, std::deque<Stream*>> queues;
    std::map<int, int> running;
  };
  struct Box {
    int arrived = 0;
    std::deque<std::function<void()>> waiting;
  };

  void at(Ns when, std::function<void()> what) { events_.push({when, number_++, std::move(what)}); }

  std::vector<int> ring_of(int rank, std::size_t dimension) const {
    int step = 1;
    for (std::size_t i = 0; i < dimension; ++i) step *= setup_.dimensions[i].size;
    const int size = setup_.dimensions[dimension].size, own = rank / step % size;
    std::vector<int> ring;
    for (int i = 0; i < size; ++i) ring.push_back(rank + (i - own) * step);
    return ring;
  }

  std::deque<Phase> phases(int rank, std::int64_t bytes) {
    std::deque<Phase> all;
    const auto add = [&](const std::string& kind, std::size_t dimension) {
      all.push_back({static_cast<int>(dimension), kind, setup_.algorithms[dimension], bytes, ring_of(rank, dimension)});
      if (all.back().algorithm == "doubleBinaryTree") {
        all.back().tree = setup_.trees_before + trees_[{rank, dimension}]++;
        return;
      }
      const auto n = static_cast<std::int64_t>(all.back().ring.size());
      if (kind == "reduce_scatter") bytes /= n;
      if (kind == "all_gather") bytes *= n;
    };
    if (is_group_ || setup_.algorithms.front().starts_with("one")) {
      std::string algorithm = setup_.algorithms.size() > 1 ? "ring" : setup_.algorithms.front();
      if (algorithm == "oneRing") algorithm = "ring";
      if (algorithm == "oneDirect") algorithm = "direct";
      if (algorithm == "oneHalvingDoubling") algorithm = "halvingDoubling";
      all.push_back({0, setup_.kind, algorithm, bytes, members_});
      return all;
    }
    std::vector<std::size_t> crossed;
    for (std::size_t i = 0; i < setup_.dimensions.size(); ++i)
      if (setup_.involved.empty() || setup_.involved[i]) crossed.push_back(i);
    const std::size_t last = crossed.size() - 1;
    if (setup_.kind == "all_gather") {
      for (std::size_t i = last + 1; i-- > 0;) add("all_gather", crossed[i]);
    } else if (setup_.kind != "all_reduce" || !setup_.local_bandwidth_aware) {
      for (std::size_t i = 0; i <= last; ++i) add(setup_.kind, crossed[i]);
    } else {
      for (std::size_t i = 0; i < last; ++i) add("reduce_scatter", crossed[i]);
      add("all_reduce", crossed[last]);
      for (std::size_t i = last; i-- > 0;) add("all_gather", crossed[i]);
    }
    return all;
  }

  /// Chunks of a queue run in the order in which they came, up to active_chunks at a time.
  void start(Rank& rank, int dimension) {
    std::deque<Stream*>& queue = rank.queues[dimension];
    while (rank.running[dimension] < setup_.active_chunks && !queue.empty()) {
      Stream* stream = queue.front();
      queue.pop_front();
      ++rank.running[dimension];
      begin_phase(*stream);
    }
  }

  void begin_phase(Stream& s) {
    s.now = s.phases.front();
    s.phases.pop_front();
    if (s.now.algorithm == "doubleBinaryTree") return begin_tree(s);
    s.n = static_cast<int>(s.now.ring.size());
    s.place = static_cast<int>(std::find(s.now.ring.begin(), s.now.ring.end(), s.rank) - s.now.ring.begin());
    s.zero = s.others = s.free = s.received = 0;
    s.toggle = false;
    s.packets.clear();
    s.at_once = s.now.algorithm == "direct" ? s.n - 1 : 1;
    const std::string& kind = s.now.kind;
    if (s.now.algorithm == "halvingDoubling") {
      int steps = 0;
      while (1 << steps < s.n) ++steps;
      s.sends = kind == "all_reduce" ? 2 * steps : steps;
      s.message = kind == "all_gather" ? s.now.bytes : s.now.bytes / 2;
      s.offset = kind == "all_gather" ? s.n / 2 : 1;
      s.factor = kind == "all_gather" ? 0.5 : 2;
      s.to = s.from = s.now.ring[static_cast<std::size_t>(s.place ^ s.offset)];
    } else {
      s.sends = kind == "all_reduce" ? 2 * (s.n - 1) : s.n - 1;
      if (kind == "all_to_all" && s.now.algorithm == "ring") s.sends = s.n * (s.n - 1) / 2;
      s.message = kind == "all_gather" ? s.now.bytes : s.now.bytes / s.n;
      s.to = next(s, s.rank, 1);
      s.from = next(s, s.rank, -1);
    }
    for (int i = 0; i < s.at_once; ++i) insert(s);
  }

  int next(const Stream& s, int rank, int step) const {
    const auto at = std::find(s.now.ring.begin(), s.now.ring.end(), rank) - s.now.ring.begin();
    return s.now.ring[static_cast<std::size_t>((at + step + s.n) % s.n)];
  }

  /// A packet to send, once the endpoint has passed it on and, where it was received to be reduced, has reduced it.
  void insert(Stream& s) {
    const bool doubles = s.now.algorithm == "halvingDoubling";
    if (s.zero == 0 && s.others == 0) {
      int steps = 0;
      while (1 << steps < s.n) ++steps;
      s.zero = s.at_once;
      s.others = doubles ? steps - 1 : s.now.algorithm == "direct" && !is_group_ ? s.at_once : (s.n - 1) * s.at_once;
      s.toggle = !s.toggle;
    }
    bool reduces = false;
    if (s.zero > 0) {
      --s.zero;
    } else {
      --s.others;
      reduces = s.now.kind == "reduce_scatter" || (s.now.kind == "all_reduce" && s.toggle);
    }
    s.packets.push_back({s.to, s.from, s.message});
    Ns wait = is_group_ ? 10 : setup_.endpoint_ns;
    if (reduces) wait += 3 * static_cast<Ns>(static_cast<double>(s.message) / (setup_.memory_gb_per_s * 1e9) * 1e9);
    at(now_ + wait, [this, &s] { general(s); });
    if (doubles) {
      turn(s);
    } else if (s.now.algorithm == "direct") {
      if ((s.to = next(s, s.to, 1)) == s.rank) s.to = next(s, s.to, 1);
      if ((s.from = next(s, s.from, -1)) == s.rank) s.from = next(s, s.from, -1);
    }
  }

  void turn(Stream& s) {
    const auto by = [&](double factor) {
      s.offset = static_cast<int>(s.offset * factor);
      s.message = static_cast<std::int64_t>(static_cast<double>(s.message) / factor);
    };
    by(s.factor);
    if (s.offset == s.n && s.now.kind == "all_reduce") by(s.factor = 0.5);
    if (s.offset > 0 && s.offset < s.n) s.to = s.from = s.now.ring[static_cast<std::size_t>(s.place ^ s.offset)];
  }

  void general(Stream& s) {
    ++s.free;
    if (s.now.algorithm == "direct" && s.now.kind == "all_reduce" && s.sends <= s.n - 1) {
      if (s.received < s.n - 1) return;
      for (int i = 0; i < s.at_once; ++i) ready(s);
    } else {
      ready(s);
    }
    if (s.sends == 0 && s.free == s.at_once) end_phase(s);
  }

  void ready(Stream& s) {
    if (s.packets.empty() || s.sends == 0 || s.free == 0) return;
    const Packet packet = s.packets.front();
    s.packets.pop_front();
    --s.sends;
    --s.free;
    post(s, packet.to, packet.bytes);
    ask(s, packet.from, packet.bytes, [this, &s] { receive(s); });
  }

  void post(const Stream& s, int to, std::int64_t bytes) {
    send(s.rank, to, bytes, [this, number = s.number, from = s.rank, to, bytes] {
      Box& box = boxes_[{number, from, to, bytes}];
      if (box.waiting.empty()) {
        ++box.arrived;
        return;
      }
      const std::function<void()> what = box.waiting.front();
      box.waiting.pop_front();
      what();
    });
  }

  void ask(const Stream& s, int from, std::int64_t bytes, std::function<void()> what) {
    Box& box = boxes_[{s.number, from, s.rank, bytes}];
    if (box.arrived > 0) {
      --box.arrived;
      at(now_, std::move(what));
    } else {
      box.waiting.push_back(std::move(what));
    }
  }

  /// As BinaryTree.cc makes it: a root with one child, a full tree below, ranks from left to right.
  Node* tree_of(const Phase& phase) {
    auto make = [this](Node* parent) {
      nodes_.push_back(std::make_unique<Node>());
      nodes_.back()->parent = parent;
      return nodes_.back().get();
    };
    std::function<Node*(int, Node*)> full = [&](int size, Node* parent) {
      Node* node = make(parent);
      if (size > 1) node->left = full(size / 2, node), node->right = full(size / 2, node);
      return node;
    };
    Node* root = make(nullptr);
    Node* child = full(static_cast<int>(phase.ring.size()) - 1, root);
    (phase.tree % 2 == 0 ? root->left : root->right) = child;
    std::size_t next = 0;
    std::function<void(Node*)> number = [&](Node* node) {
      if (node == nullptr) return;
      number(node->left);
      node->rank = phase.ring[next++];
      number(node->right);
    };
    number(root);
    return root;
  }

  void begin_tree(Stream& s) {
    std::function<Node*(Node*)> find = [&](Node* node) -> Node* {
      if (node == nullptr || node->rank == s.rank) return node;
      Node* left = find(node->left);
      return left != nullptr ? left : find(node->right);
    };
    const Node* own = find(tree_of(s.now));
    const std::int64_t bytes = s.now.bytes;
    const Ns pass = setup_.endpoint_ns,
             reduce = pass + 3 * static_cast<Ns>(static_cast<double>(bytes) / (setup_.memory_gb_per_s * 1e9) * 1e9);
    if (own->left == nullptr && own->right == nullptr) {
      at(now_ + pass, [this, &s, own, bytes, pass] {
        post(s, own->parent->rank, bytes);
        ask(s, own->parent->rank, bytes, [this, &s, pass] { at(now_ + pass, [this, &s] { end_phase(s); }); });
      });
      return;
    }
    const auto down = [this, &s, own, bytes] {
      for (const Node* child : {own->left, own->right})
        if (child != nullptr) post(s, child->rank, bytes);
      end_phase(s);
    };
    const auto up = [this, &s, own, bytes, reduce, down] {
      if (own->parent == nullptr) return down();
      post(s, own->parent->rank, bytes);
      ask(s, own->parent->rank, bytes, [this, reduce, down] { at(now_ + reduce, down); });
    };
    auto left = std::make_shared<int>((own->left != nullptr ? 1 : 0) + (own->right != nullptr ? 1 : 0));
    for (const Node* child : {own->left, own->right})
      if (child != nullptr)
        ask(s, child->rank, bytes, [this, reduce, left, up] {
          at(now_ + reduce, [left, up] {
            if (--*left == 0) up();
          });
        });
  }

  void receive(Stream& s) {
    ++s.received;
    insert(s);
  }

  void end_phase(Stream& s) {
    Rank& rank = ranks_[static_cast<std::size_t>(s.rank)];
    const int dimension = s.now.dimension;
    --rank.running[dimension];
    if (s.phases.empty()) {
      if (--rank.left == 0) ends_[rank.place] = now_;
    } else {
      rank.queues[s.phases.front().dimension].push_back(&s);
      start(rank, s.phases.front().dimension);
    }
    start(rank, dimension);
  }

  void send(int from, int to, std::int64_t bytes, std::function<void()> arrive) {
    int step = 1;
    const Dimension* dimension = nullptr;
    int a = 0, b = 0;
    for (const Dimension& one : setup_.dimensions) {
      a = from / step % one.size, b = to / step % one.size;
      step *= one.size;
      if (a == b) continue;
      dimension = &one;
      break;
    }
    const double sending = static_cast<double>(bytes) / (dimension->gb_per_s * (1 << 30) / 1e9);
    const int ahead = (b - a + dimension->size) % dimension->size, back = dimension->size - ahead;
    std::deque<int> way{a};  // by places; the switch is behind the last
    if (dimension->block == "Switch") way.push_back(dimension->size);
    for (int at = a; dimension->block == "Ring" && at != b;) {
      at = (at + (back < ahead ? -1 : 1) + dimension->size) % dimension->size;
      if (at != b) way.push_back(at);
    }
    way.push_back(b);
    if (!setup_.is_aware)
      return at(now_ + static_cast<Ns>(static_cast<double>(way.size() - 1) * dimension->latency_ns + sending),
                std::move(arrive));
    hop(std::move(way), sending, dimension->latency_ns, std::move(arrive));
  }

  /// A link takes a whole message at a time, and the device at its end has it a latency later.
  void hop(std::deque<int> way, double sending, double latency, std::function<void()> arrive) {
    if (way.size() == 1) return arrive();
    Ns& free = links_[{way[0], way[1]}];
    const Ns begin = std::max(now_, free);
    free = begin + static_cast<Ns>(sending);
    way.pop_front();
    at(begin + static_cast<Ns>(latency + sending),
       [this, way, sending, latency, arrive] { hop(way, sending, latency, arrive); });
  }

  Setup setup_;
  int all_ = 1;
  std::vector<int> members_;
  bool is_group_ = false;
  std::vector<Rank> ranks_;
  std::map<std::tuple<int, int, int, std::int64_t>, Box> boxes_;
  std::map<std::pair<int, std::size_t>, int> trees_;  // that chunks of a rank have taken, by dimension
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<int, int>, Ns> links_;
  std::priority_queue<Event> events_;
  std::vector<Ns> ends_;
  Ns now_ = 0;
  long number_ = 0;
};

}  // namespace manyworlds::tests::astra_sim_oracle
