// The interface between the farm's logic and the network: whole messages between numbered endpoints. No call blocks and
// none is collective. The transport does not report dead endpoints: the callers infer death from silence.
#pragma once

#include <optional>
#include <string>

namespace manyworlds::farm {

struct Envelope {
  int from = 0;
  std::string message;
};

class MessageTransport {
 public:
  virtual ~MessageTransport() = default;
  virtual int self() const = 0;
  virtual int size() const = 0;
  /// Queues the message and returns at once; delivery may take any time, or never happen.
  virtual void send(int to, std::string message) = 0;
  virtual std::optional<Envelope> receive() = 0;
  /// Returns true when no message sent from here is still queued.
  virtual bool flushed() = 0;
};

}  // namespace manyworlds::farm
