// The transport between ranks: Iprobe, Irecv and Isend, polled; never a call that waits for another rank. A rank that
// died never answers and MPI never says so, hence the deadline on sends.
#pragma once

#include <mpi.h>

#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "farm/protocol/transport.hpp"

namespace manyworlds::farm {

/// After how many seconds a rank is dead, not slow.
struct MpiPatience {
  double send_s = 60;     // that did not take a message
  double silence_s = 60;  // that said nothing, as ranks part
  double least_s = 20;    // once it is waited for, whatever it did not say while rank 0 was busy
  double leader_s = 600;  // rank 0, which hears nobody while it writes the answer
};

class MpiTransport final : public Transport {
 public:
  /// Starts MPI.
  explicit MpiTransport(MpiPatience patience = {});

  int self() const override { return self_; }
  int size() const override { return size_; }
  void send(int to, std::string message) override;
  std::optional<Envelope> receive() override;
  bool flushed() override;

  /// Ends MPI, which waits for all ranks, when `clean` and all of them said that they come too: rank 0 hears that from
  /// each, however long it takes as long as they live, and tells them. Else, as when a rank died, the process leaves
  /// with `exit_code` and without MPI_Finalize. What was not received by then is lost.
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
  void post(int to, std::string message, int tag);
  void start_receiving();
  void progress_sends();
  bool part(bool clean);
  void hear_goodbyes(std::map<int, char>& goodbyes);
  template <class Over>
  void take_until(Over over);

  MpiPatience patience_;
  int self_ = 0, size_ = 1;
  std::list<Sending> sending_;
  std::list<Receiving> receiving_;
  std::deque<Envelope> to_self_;
  std::set<int> unreachable_;
  std::vector<double> heard_s_;  // when each rank spoke last
};

}  // namespace manyworlds::farm
