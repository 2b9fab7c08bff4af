// Bounds of points by several threads, which take turns with workers, so that each of these keeps its caches.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "farm/search/point_bounds.hpp"

namespace manyworlds::farm {

/// Workers of a space, which must outlive them. Any thread may call with_worker(), and none while the space changes.
class BoundWorkers {
 public:
  explicit BoundWorkers(const experiments::Space& space) : space_(space) {}

  /// Calls work(worker) with one that nobody else has.
  template <class Work>
  void with_worker(const Work& work) {
    std::unique_ptr<PointBounds> worker = take();
    work(*worker);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }

 private:
  std::unique_ptr<PointBounds> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<PointBounds>(space_);
    std::unique_ptr<PointBounds> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }

  const experiments::Space& space_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PointBounds>> idle_;
};

}  // namespace manyworlds::farm
