// A transport between endpoints of one process. Without faults it serves `-j 1`; with seeded faults it delays,
// reorders, duplicates and loses messages and kills endpoints, so that every fault of a cluster can be tested within
// milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "farm/protocol/message_transport.hpp"

namespace manyworlds::farm {

struct MessageFaults {
  std::uint64_t seed = 0;
  double loss_probability = 0;                      // probability per message
  double duplication_probability = 0;               // probability per message
  std::int64_t delay_min_ms = 0, delay_max_ms = 0;  // uniformly distributed; a wide range reorders messages
};

class InProcessNetwork {
 public:
  explicit InProcessNetwork(int endpoints, MessageFaults faults = {});
  ~InProcessNetwork();

  MessageTransport& endpoint(int number);
  /// Makes all messages due up to `now_ms` receivable.
  void set_time(std::int64_t now_ms) { now_ms_ = now_ms; }
  /// Kills an endpoint. Messages that it sent before still arrive; messages to it, and any that it sends later, are
  /// lost.
  void kill(int number);
  void revive(int number);
  /// Disconnects an endpoint: until reconnect(), messages between it and others are lost. Messages sent before still
  /// arrive.
  void disconnect(int number);
  void reconnect(int number);
  void stop_faults() {
    faults_ = {.seed = faults_.seed,
               .loss_probability = 0,
               .duplication_probability = 0,
               .delay_min_ms = 0,
               .delay_max_ms = 0};
  }

 private:
  class Endpoint;
  void send(int from, int to, std::string message);
  double random();

  MessageFaults faults_;
  std::uint64_t draws_ = 0;
  std::int64_t now_ms_ = 0;
  std::uint64_t sent_ = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

}  // namespace manyworlds::farm
