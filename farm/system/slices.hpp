// Work on many independent items by one thread per available CPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "farm/system/host_resources.hpp"

namespace manyworlds::farm {

/// Calls work(begin, end) with contiguous ranges that make up [0, count), each on a thread of its own, with caches of
/// its own and at least `min_per_thread` items. If several fail, the exception of the first range is thrown, as with
/// one thread.
template <class Work>
void for_each_slice(std::size_t count, const Work& work, std::size_t min_per_thread = 64) {
  constexpr std::size_t kMaxThreads = 16;
  const std::size_t threads =
      std::clamp<std::size_t>(count / min_per_thread, 1, std::min<std::size_t>(kMaxThreads, available_cpus()));
  std::vector<std::exception_ptr> failed(threads);
  const auto run = [&](std::size_t slice) {
    try {
      work(count * slice / threads, count * (slice + 1) / threads);
    } catch (...) {
      failed[slice] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t slice = 1; slice < threads; ++slice) others.emplace_back(run, slice);
  run(0);
  for (std::thread& one : others) one.join();
  for (const std::exception_ptr& one : failed)
    if (one) std::rethrow_exception(one);
}

}  // namespace manyworlds::farm
