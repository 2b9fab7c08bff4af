// The transport between MPI ranks: polled Iprobe, Irecv and Isend, and never a call that blocks on another rank. MPI
// does not report that a rank has died, so sends have a deadline.
#pragma once

#include <mpi.h>

#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "farm/protocol/message_transport.hpp"

namespace manyworlds::farm {

/// The seconds after which a rank counts as dead rather than slow.
struct MpiTimeouts {
  double send_s = 60;      // the rank has not received a message
  double silence_s = 60;   // the rank has sent nothing, at the end of the run
  double min_wait_s = 20;  // minimum wait at the end of the run, however long the rank was silent while rank 0 was busy
  double leader_s = 600;   // rank 0 is silent: it receives nothing while it writes the results
};

class MpiTransport final : public MessageTransport {
 public:
  /// Calls MPI_Init.
  explicit MpiTransport(MpiTimeouts timeouts = {});

  int self() const override { return self_; }
  int size() const override { return size_; }
  void send(int to, std::string message) override;
  std::optional<Envelope> receive() override;
  bool flushed() override;

  /// Calls MPI_Finalize, which blocks until all ranks have called it, if `orderly` and all ranks agree. Rank 0 waits
  /// for the goodbye of each rank as long as that rank lives, and then sends its decision to all. Otherwise, as when a
  /// rank has died, the process exits with `exit_code` and without MPI_Finalize. Messages not received by then are
  /// lost.
  void leave(bool orderly, int exit_code);

 private:
  struct PendingSend {
    MPI_Request request;
    std::string bytes;
    int to;
    double posted_s;
  };
  struct PendingReceive {
    MPI_Request request;
    std::string bytes;
    int from;
  };
  void post(int to, std::string message, int tag);
  void post_receives();
  void test_sends();
  bool exchange_goodbyes(bool orderly);
  void receive_goodbyes(std::map<int, char>& goodbyes);
  template <class Condition>
  void discard_until(Condition condition);

  MpiTimeouts timeouts_;
  int self_ = 0, size_ = 1;
  std::list<PendingSend> pending_sends_;
  std::list<PendingReceive> pending_receives_;
  std::deque<Envelope> loopback_;
  std::set<int> unreachable_;
  std::vector<double> last_heard_s_;  // time at which each rank was last heard
};

}  // namespace manyworlds::farm
