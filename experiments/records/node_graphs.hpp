// Graphs that a process made node by node, and the calls that a launch of one makes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "experiments/records/call.hpp"

namespace manyworlds::experiments::captured {

/// Takes what a record says of such graphs, in its order. Nodes are numbered from 0 in their graph; what a node does is
/// a call without a stream, of kind `other` for an empty one. All throw core::InputError, without a place, for a graph,
/// a node or an instance that there is not, or that was made before.
class NodeGraphs {
 public:
  using Numbers = std::vector<std::int32_t>;

  void create(std::int32_t graph);
  bool has(std::int32_t graph) const { return graphs_.count(graph) > 0; }
  void add(std::int32_t graph, std::int32_t node, const Numbers& after, const Call& call);
  /// The n-th node of `to` waits for the n-th of `from`.
  void add_dependencies(std::int32_t graph, const Numbers& from, const Numbers& to);
  /// Changes what a node of a graph does, for instances that are made from then on.
  void set_node(std::int32_t graph, std::int32_t node, const Call& call);

  /// An instance has the nodes that its graph has then. Throws also if nodes wait for each other.
  void instantiate(std::int32_t graph, std::int32_t instance);
  /// Gives an instance the nodes of a graph, for launches from then on. Nodes wait for each other as before.
  void update(std::int32_t instance, std::int32_t graph);
  /// Changes what a node of an instance does, for launches from then on.
  void set_node_of_instance(std::int32_t instance, std::int32_t node, const Call& call);

  /// Adds the calls of an instance to those of a record. Nodes that follow each other share a stream, the first ones
  /// that of the launch, others one of the instance's own; events order streams as the nodes wait for each other. What
  /// follows on the stream of the launch waits for all nodes, and a launch for the last one of the same instance (CUDA
  /// C++ Programming Guide, "CUDA Graphs").
  void launch(std::int32_t instance, const Call& launch, std::vector<Call>& to) const;
  /// A hash of what is in an instance.
  std::uint64_t form_of(std::int32_t instance) const;

 private:
  struct Graph {
    std::vector<Call> nodes;
    std::vector<Numbers> after;
  };
  /// In which order nodes are issued, and on which stream each one is: 0 is that of the launch.
  struct Places {
    Numbers order, stream, last_of_stream;
    std::vector<bool> is_awaited;  // by a node of another stream, or by the stream of the launch
  };
  struct Instance {
    Graph graph;
    Places places;
    std::int32_t first_stream = 0, first_event = 0;
  };
  Graph& graph_of(std::int32_t graph);
  const Instance& instance_of(std::int32_t instance) const;
  Instance& instance_of(std::int32_t instance);
  static Places places_of(const Graph& graph);

  std::map<std::int32_t, Graph> graphs_;
  std::map<std::int32_t, Instance> instances_;
  std::int32_t next_stream_ = kOfNodes, next_event_ = kOfNodes;
};

}  // namespace manyworlds::experiments::captured
