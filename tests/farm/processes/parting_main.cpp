// Ranks that part in the ways that went wrong, or may: parting WAY, under mpirun with two ranks.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>

#include "farm/protocol/mpi_transport.hpp"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  const std::string way = argc > 1 ? argv[1] : "";
  manyworlds::farm::MpiTimeouts timeouts;
  if (way == "killed_follower") timeouts = {.silence_s = 3, .min_wait_s = 1};
  manyworlds::farm::MpiTransport transport(timeouts);
  const bool leader = transport.self() == 0;
  if (way == "late_result") {
    // Far more than MPI sends before it is asked for; rank 0 has ended its loop and never asks.
    if (!leader) transport.send(0, std::string(1 << 20, 'r'));
  } else if (way == "slow_leader") {
    if (leader) std::this_thread::sleep_for(8s);
  } else if (way == "slow_follower") {
    if (!leader) std::this_thread::sleep_for(8s);
  } else if (way == "slow_after") {
    // What follows MPI_Finalize has all the time it needs.
  } else if (way == "killed_follower") {
    if (!leader) ::raise(SIGKILL);
  } else if (way != "failed_leader") {
    std::cerr << "parting late_result|slow_leader|slow_follower|slow_after|killed_follower|failed_leader\n";
    return 2;
  }
  transport.leave(way != "failed_leader" || !leader, 7);  // the exit code of who leaves without MPI_Finalize
  if (way == "slow_after" && leader) std::this_thread::sleep_for(8s);
  std::cout << "finalized\n";
  return 0;
}
