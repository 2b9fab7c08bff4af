// The seam between the farm's logic and the wire: whole messages between numbered parties, nothing else.
// No call blocks, nothing is collective, and a party that died is told apart from a slow one by nobody but us.
#pragma once

#include <optional>
#include <string>

namespace manyworlds::farm {

struct Envelope {
  int from = 0;
  std::string message;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int self() const = 0;
  virtual int size() const = 0;
  /// Takes the message and returns at once; it arrives some time, or never.
  virtual void send(int to, std::string message) = 0;
  virtual std::optional<Envelope> receive() = 0;
  /// True when nothing sent from here still waits to leave.
  virtual bool flushed() = 0;
};

}  // namespace manyworlds::farm
