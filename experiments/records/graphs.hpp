// Graphs that a process captured of its streams, and the calls that a launch of one makes.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "experiments/records/call.hpp"

namespace manyworlds::experiments::captured {

/// Takes a record's calls in their order. What is given to a stream between the begin and the end of its capture is
/// part of the graph, and so is what is given to streams that wait for events of it (CUDA C++ Programming Guide,
/// "Creating a Graph Using Stream Capture").
class Graphs {
 public:
  /// Throw core::InputError, without a place, for a graph that there is or is not, and a stream that is captured.
  void begin(std::int32_t stream, std::int32_t graph);
  void end(std::int32_t graph);

  /// Returns whether a call is part of a graph, which keeps it. Throws core::InputError for the launch of one in
  /// another.
  bool keep(const Call& call);
  /// Adds the calls of a graph to those of a record: on the stream of the launch what was captured of the stream where
  /// the capture began, on streams of graphs what was captured of others.
  void launch(const Call& launch, std::vector<Call>& to);
  /// A hash of what is in a graph.
  std::uint64_t form_of(std::int32_t graph) const;

 private:
  struct Graph {
    std::int32_t origin = 0;
    bool has_ended = false;
    std::vector<Call> calls;
  };
  const Graph& ended(std::int32_t graph) const;

  std::map<std::int32_t, Graph> graphs_;
  std::map<std::int32_t, std::int32_t> of_stream_, of_event_;  // the graph that is captured of them
  std::int32_t next_group_ = kInGraphs;                        // of NCCL's
};

}  // namespace manyworlds::experiments::captured
