// Parties in one process. Without faults it carries `-j 1`; with them it delays, reorders, doubles and loses by
// seed, and kills parties, so that every fault of a cluster is a test of milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "farm/protocol/transport.hpp"

namespace manyworlds::farm {

struct Faults {
  std::uint64_t seed = 0;
  double lose = 0;                                  // probability per message
  double duplicate = 0;                             // probability per message
  std::int64_t delay_min_ms = 0, delay_max_ms = 0;  // uniform: a wide range reorders
};

class InProcessNetwork {
 public:
  explicit InProcessNetwork(int parties, Faults faults = {});
  ~InProcessNetwork();

  Transport& party(int number);
  /// Messages due up to now can be received.
  void set_time(std::int64_t now_ms) { now_ms_ = now_ms; }
  /// What the party sent stays on its way; what is on its way to it, and all it sends later, is lost.
  void kill(int number);
  void revive(int number);
  /// Until mended, what the party and others send each other is lost; what was on its way before arrives.
  void cut(int number);
  void mend(int number);
  void heal() { faults_ = {.seed = faults_.seed, .lose = 0, .duplicate = 0, .delay_min_ms = 0, .delay_max_ms = 0}; }

 private:
  class Party;
  void send(int from, int to, std::string message);
  double random();

  Faults faults_;
  std::uint64_t draws_ = 0;
  std::int64_t now_ms_ = 0;
  std::uint64_t sent_ = 0;
  std::vector<std::unique_ptr<Party>> parties_;
};

}  // namespace manyworlds::farm
