#include "farm/cli/options/thread_options.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "farm/system/host_resources.hpp"

namespace manyworlds::farm::commands {

void add_thread_options(cxxopts::Options& options) {
  options.add_options()("threads", "how many threads simulate packets; default: the CPUs at hand; same results",
                        cxxopts::value<int>(), "N");
}

std::size_t threads_of(const cxxopts::ParseResult& parsed) {
  return static_cast<std::size_t>(given_threads(parsed).value_or(available_cpus()));
}

std::optional<int> given_threads(const cxxopts::ParseResult& parsed) {
  constexpr int kMaxThreads = 1'024;
  if (parsed.count("threads") == 0) return std::nullopt;
  const int threads = parsed["threads"].as<int>();
  if (threads < 1 || threads > kMaxThreads)
    throw core::InputError(fmt::format("the number of threads is from 1 to {}, not {}", kMaxThreads, threads),
                           "--threads");
  return threads;
}

}  // namespace manyworlds::farm::commands
