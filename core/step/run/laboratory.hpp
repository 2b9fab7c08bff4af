// What a process keeps to run many worlds: routers, DAGs and memories, each by what it depends on. Nothing in it can
// change an answer; throwing it away only costs time. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/step/network/isolated.hpp"
#include "core/step/run/result.hpp"
#include "core/step/run/step.hpp"
#include "core/step/world/outline.hpp"

namespace manyworlds::core::step {

class Laboratory {
 public:
  /// `share` off: nothing computed for one collective, component or world is used for another.
  explicit Laboratory(bool share = true) : share_(share) {}

  World world(const Configuration& configuration, Ranks ranks = Ranks::all);
  /// What planning needs to know of a world, for much less than building it.
  Outline outline(const Configuration& configuration);

  IsolatedResult isolated(const World& world, const Use& use);
  /// Runs a step to its end; what `results` lacks is computed here and added to it. Of `recording` and
  /// `reached` see Step.
  StepResult run(const World& world, IsolatedResults& results, Recording* recording = nullptr,
                 std::atomic<Time>* reached = nullptr);
  /// What was computed here so far, and not remembered.
  const network::LinkHops& link_hops() const { return link_hops_; }

 private:
  struct Memory {
    Memory(const network::Transport& transport, bool share) : memo(transport), episodes(memo, share) {}
    network::Memo memo;
    Episodes episodes;
  };
  Memory& memory(const network::Transport& transport);
  std::shared_ptr<network::Router> router(const Configuration& configuration);
  std::shared_ptr<Layout> layout(const Configuration& configuration);

  bool share_;
  Dags dags_;
  struct Routed {
    std::shared_ptr<const network::Graph> graph;
    network::Routing routing;
    std::int64_t seed;
    std::shared_ptr<network::Router> router;
  };
  std::vector<Routed> routers_;
  struct Arranged {
    Arrangement arrangement;
    std::shared_ptr<network::Router> router;
    std::shared_ptr<Layout> layout;
  };
  std::vector<Arranged> layouts_;  // a few, the last used one last
  std::map<sharing::Key, Operations> operations_;
  std::vector<std::unique_ptr<Memory>> memories_;  // one per transport
  network::LinkHops link_hops_;
};

}  // namespace manyworlds::core::step
