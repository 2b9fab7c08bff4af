// The main loop of the server process: its limits of resources, and when it ends.
#include "farm/serve/serve_run.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <fstream>

#include "core/base/error.hpp"
#include "farm/serve/live_page.hpp"
#include "farm/serve/server.hpp"

namespace manyworlds::farm::serve {
namespace {

constexpr int kLastPriority = 19;
constexpr rlim_t kMemoryBytes = 256 << 20;  // in addition to the size of the program
constexpr rlim_t kOtherFiles = 64;

void limit(int what, rlim_t max_value) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(what), &now) != 0) return;
  now.rlim_cur = std::min(max_value, now.rlim_max);
  now.rlim_max = now.rlim_cur;
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &now);
}

/// Lowers the priority and limits the resources of this process. A server that exceeds them dies, and the run
/// continues.
void limit_resources(const ServerLimits& limits) {
  ::setpriority(PRIO_PROCESS, 0, kLastPriority);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (pages > 0) limit(RLIMIT_AS, pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMemoryBytes);
  limit(RLIMIT_NOFILE, 2 * limits.connections + kOtherFiles);  // each connection may use a file
  limit(RLIMIT_CORE, 0);
}

}  // namespace

void serve_run(const std::filesystem::path& run_directory, Listener listener, const std::string& token,
               StopCondition stop_condition) {
  const ServerLimits limits;
  limit_resources(limits);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);  // Slurm's warning signal concerns the run only
  const std::uint16_t port = listener.port();
  boost::asio::io_context context;
  Server server(context, std::move(listener), run_directory, Access(token, port), live_page(), limits);
  boost::asio::signal_set signals(context, SIGTERM);
  boost::asio::posix::stream_descriptor input(context);
  std::array<char, 64> ignored_bytes;
  const auto finish = [&] {
    boost::system::error_code ignored;
    signals.cancel(ignored);
    input.close(ignored);
    server.finish();
  };
  signals.async_wait([&](boost::system::error_code error, int) {
    if (!error) finish();
  });
  // The parent holds our standard input open: its end means that the parent is gone. What it writes is ignored.
  std::function<void()> wait_for_end_of_input = [&] {
    input.async_read_some(boost::asio::buffer(ignored_bytes), [&](boost::system::error_code error, std::size_t) {
      if (!error) return wait_for_end_of_input();
      if (error != boost::asio::error::operation_aborted) finish();
    });
  };
  if (stop_condition == StopCondition::on_signal) {
    signals.add(SIGINT);
  } else {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    input.assign(::dup(STDIN_FILENO));
    wait_for_end_of_input();
  }
  context.run();
}

}  // namespace manyworlds::farm::serve
