// The transport between ranks: Iprobe, Irecv and Isend, polled; never a call that waits for another rank. A rank that
// died never answers and MPI never says so, hence the deadline on sends.
#pragma once

#include <mpi.h>

#include <deque>
#include <list>
#include <set>

#include "farm/transport.hpp"

namespace manyworlds::farm {

class MpiTransport final : public Transport {
 public:
  /// Starts MPI.
  MpiTransport();

  int self() const override { return self_; }
  int size() const override { return size_; }
  void send(int to, std::string message) override;
  std::optional<Envelope> receive() override;
  bool flushed() override;

  /// Ends MPI, which waits for all ranks; only when `clean`, that is when all of them are known to come. Else, or
  /// when it takes longer than a few seconds, the process leaves with `exit_code` without a goodbye.
  void leave(bool clean, int exit_code);

 private:
  struct Sending {
    MPI_Request request;
    std::string bytes;
    int to;
    double since;
  };
  struct Receiving {
    MPI_Request request;
    std::string bytes;
    int from;
  };
  void start_receiving();
  void progress_sends();

  int self_ = 0, size_ = 1;
  std::list<Sending> sending_;
  std::list<Receiving> receiving_;
  std::deque<Envelope> to_self_;
  std::set<int> unreachable_;
};

}  // namespace manyworlds::farm
