// CUDA's functions of graphs that are made node by node, after the CUDA Runtime API (graph management). What a node
// does is recorded where it is added; what the host sees of it, it sees at each launch.
#include <algorithm>
#include <cstring>
#include <optional>

#include "experiments/capture/call_lines.hpp"
#include "experiments/capture/session.hpp"
#include "experiments/capture/versioned_calls.hpp"

namespace manyworlds::experiments::capture {
namespace {

std::string numbers(const std::vector<int>& of) {
  std::string list = "[";
  for (std::size_t i = 0; i < of.size(); ++i) list += (i == 0 ? "" : ",") + std::to_string(of[i]);
  return list + "]";
}

/// A graph that nodes can be added to; null if it is none, or an instance.
Graph* graph_of(void* handle) {
  Graph* graph = static_cast<Graph*>(handle);
  return session().graphs.contains(graph) && graph->instance < 0 ? graph : nullptr;
}

/// Nodes of a graph that is captured of streams have no numbers.
void check_made_of_nodes(const char* call, const Graph& graph) {
  if (graph.is_captured) end_capture(std::string(call) + " of a graph that was captured of streams is not modelled");
}

/// The node of a handle; null if it is none, or one of another graph.
std::shared_ptr<GraphNode> node_of(const void* handle, int graph) {
  const auto found = session().nodes.find(handle);
  return found != session().nodes.end() && found->second->graph == graph ? found->second : nullptr;
}

std::optional<std::vector<int>> node_numbers(void* const* handles, std::size_t count, int graph) {
  if (handles == nullptr && count > 0) return std::nullopt;
  std::vector<int> list;
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<GraphNode> node = node_of(handles[i], graph);
    if (node == nullptr) return std::nullopt;
    list.push_back(node->number);
  }
  return list;
}

/// What a node is beside its place in the graph.
struct NodeWork {
  bool is_kernel = false;
  std::function<void()> effect;
};

/// Adds a node to a graph. `describe` adds what it does to the line, and fills in the work.
template <class Describe>
Error add_node(const char* call, void** out, void* handle, void* const* after, std::size_t count, Describe describe) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  Graph* graph = graph_of(handle);
  if (out == nullptr || graph == nullptr) return recorded(line, kInvalidValue);
  check_made_of_nodes(call, *graph);
  line.number("graph", graph->number).number("node", static_cast<std::int64_t>(graph->nodes.size()));
  std::optional<std::vector<int>> waits = node_numbers(after, count, graph->number);
  if (!waits) return recorded(line, kInvalidValue);
  std::sort(waits->begin(), waits->end());
  waits->erase(std::unique(waits->begin(), waits->end()), waits->end());
  line.json("after", numbers(*waits));
  NodeWork work;
  const Error error = describe(line, work);
  if (error != kSuccess) return recorded(line, error);
  const auto node = std::make_shared<GraphNode>(GraphNode{graph->number, static_cast<int>(graph->nodes.size()),
                                                          work.is_kernel, std::move(work.effect), std::move(*waits)});
  graph->nodes.push_back(node);
  of.nodes.emplace(node.get(), node);
  *out = node.get();
  return recorded(line);
}

/// `extra` is the other way to give arguments, of which the record has none.
Error describe_kernel(const char* call, Line& line, const KernelNode* with) {
  if (with == nullptr) return kInvalidValue;
  if (with->extra != nullptr) end_capture(std::string(call) + ": arguments by 'extra' are not modelled");
  return describe_launch(call, line, with->function, {with->grid, with->block, with->shared_bytes, nullptr},
                         with->values);
}

Error describe_copy_node(Line& line, NodeWork& work, void* to, const void* from, std::size_t bytes, int kind) {
  work.effect = [=] {
    const std::lock_guard lock(session().mutex);
    move_for_host(to, from, bytes);
  };
  return describe_copy(line, to, from, bytes, kind);
}

/// Rows of a copy that lie one behind the other, as one; the pitch counts where there is more than one.
void check_contiguous(const PitchedPlace& place, const std::size_t (&extent)[3]) {
  const bool is_one_row = extent[1] <= 1 && extent[2] <= 1;
  const bool is_one_plane = place.pitch_bytes == extent[0] && (extent[2] <= 1 || place.height == extent[1]);
  if (!is_one_row && !is_one_plane)
    end_capture("cudaGraphAddMemcpyNode of rows with gaps between them is not modelled");
}

char* begin_of(const PitchedPlace& place, const std::size_t (&position)[3]) {
  const std::size_t rows = position[1] + position[2] * place.height;
  return static_cast<char*>(place.pointer) + position[0] + rows * place.pitch_bytes;
}

}  // namespace

Error add_dependencies(void* handle, void* const* from, void* const* to, std::size_t count) {
  const char* const call = "cudaGraphAddDependencies";
  const std::lock_guard lock(session().mutex);
  Line line(call);
  Graph* graph = graph_of(handle);
  if (graph == nullptr) return recorded(line, kInvalidValue);
  check_made_of_nodes(call, *graph);
  const auto before = node_numbers(from, count, graph->number), after = node_numbers(to, count, graph->number);
  if (!before || !after) return recorded(line.number("graph", graph->number), kInvalidValue);
  line.number("graph", graph->number).json("from", numbers(*before)).json("to", numbers(*after));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<int>& waits = node_of(to[i], graph->number)->after;
    if (std::find(waits.begin(), waits.end(), (*before)[i]) == waits.end()) waits.push_back((*before)[i]);
  }
  return recorded(line);
}

void check_default_edges(const char* call, const void* edges, std::size_t count) {
  constexpr std::size_t kEdgeBytes = 8;
  const char* bytes = static_cast<const char*>(edges);
  if (edges == nullptr || std::all_of(bytes, bytes + kEdgeBytes * count, [](char one) { return one == 0; })) return;
  end_capture(std::string(call) + ": edges of a kind of their own (programmatic launch) are not modelled");
}

extern "C" {

Error cudaGraphCreate(void** out, unsigned flags) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line("cudaGraphCreate");
  if (out == nullptr || flags != 0) return recorded(line, kInvalidValue);
  Graph* graph = new Graph{of.next_graph++, -1, false, {}, {}};
  of.graphs.insert(graph);
  *out = graph;
  return recorded(line.number("graph", graph->number));
}

Error cudaGraphAddKernelNode(void** out, void* graph, void* const* after, std::size_t count, const KernelNode* with) {
  const char* const call = "cudaGraphAddKernelNode";
  return add_node(call, out, graph, after, count, [&](Line& line, NodeWork& work) {
    work.is_kernel = true;
    return describe_kernel(call, line, with);
  });
}

Error cudaGraphAddMemcpyNode1D(void** out, void* graph, void* const* after, std::size_t count, void* to,
                               const void* from, std::size_t bytes, int kind) {
  return add_node("cudaGraphAddMemcpyNode", out, graph, after, count,
                  [&](Line& line, NodeWork& work) { return describe_copy_node(line, work, to, from, bytes, kind); });
}

Error cudaGraphAddMemcpyNode(void** out, void* graph, void* const* after, std::size_t count, const CopyNode* with) {
  return add_node("cudaGraphAddMemcpyNode", out, graph, after, count, [&](Line& line, NodeWork& work) -> Error {
    if (with == nullptr) return kInvalidValue;
    if (with->from_array != nullptr || with->to_array != nullptr)
      end_capture("cudaGraphAddMemcpyNode of arrays is not modelled");
    check_contiguous(with->from, with->extent);
    check_contiguous(with->to, with->extent);
    const std::size_t bytes = with->extent[0] * with->extent[1] * with->extent[2];
    return describe_copy_node(line, work, begin_of(with->to, with->to_position),
                              begin_of(with->from, with->from_position), bytes, with->kind);
  });
}

Error cudaGraphAddMemsetNode(void** out, void* graph, void* const* after, std::size_t count, const SetNode* with) {
  return add_node("cudaGraphAddMemsetNode", out, graph, after, count, [&](Line& line, NodeWork& work) -> Error {
    const bool is_set = with != nullptr &&
                        (with->element_bytes == 1 || with->element_bytes == 2 || with->element_bytes == 4) &&
                        with->height > 0;
    if (!is_set) return kInvalidValue;
    if (with->height > 1 && with->pitch_bytes != with->width * with->element_bytes)
      end_capture("cudaGraphAddMemsetNode of rows with gaps between them is not modelled");
    const std::size_t bytes = with->width * with->element_bytes * with->height;
    work.effect = [bytes, of = *with] {
      const std::lock_guard lock(session().mutex);
      set_for_host(of.to, of.value, of.element_bytes, bytes);
    };
    return describe_set(line, with->to, with->value, bytes);
  });
}

Error cudaGraphAddEmptyNode(void** out, void* graph, void* const* after, std::size_t count) {
  return add_node("cudaGraphAddEmptyNode", out, graph, after, count, [](Line&, NodeWork&) { return kSuccess; });
}

Error cudaGraphAddHostNode(void** out, void* graph, void* const* after, std::size_t count, const HostNode* with) {
  return add_node("cudaGraphAddHostNode", out, graph, after, count, [&](Line&, NodeWork& work) -> Error {
    if (with == nullptr || with->function == nullptr) return kInvalidValue;
    work.effect = [of = *with] { of.function(of.data); };
    return kSuccess;
  });
}

/// Without an array it says how many there are.
Error cudaGraphGetNodes(void* handle, void** out, std::size_t* count) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaGraphGetNodes");
  const Graph* graph = graph_of(handle);
  if (graph == nullptr || count == nullptr) return recorded(line, kInvalidValue);
  check_made_of_nodes("cudaGraphGetNodes", *graph);
  if (out != nullptr) {
    for (std::size_t i = 0; i < *count; ++i)
      out[i] = i < graph->nodes.size() ? const_cast<GraphNode*>(graph->nodes[i].get()) : nullptr;
    *count = std::min(*count, graph->nodes.size());
  } else {
    *count = graph->nodes.size();
  }
  return recorded(line.number("graph", graph->number));
}

/// Instances that there are stay as they were.
Error cudaGraphKernelNodeSetParams(void* handle, const KernelNode* with) {
  const char* const call = "cudaGraphKernelNodeSetParams";
  const std::lock_guard lock(session().mutex);
  Line line(call);
  const auto found = session().nodes.find(handle);
  if (found == session().nodes.end() || !found->second->is_kernel) return recorded(line, kInvalidValue);
  line.number("graph", found->second->graph).number("node", found->second->number);
  return recorded(line, describe_kernel(call, line, with));
}

Error cudaGraphExecKernelNodeSetParams(void* handle, void* node_handle, const KernelNode* with) {
  const char* const call = "cudaGraphExecKernelNodeSetParams";
  const std::lock_guard lock(session().mutex);
  Line line(call);
  Graph* instance = static_cast<Graph*>(handle);
  if (!session().graphs.contains(instance) || instance->instance < 0) return recorded(line, kInvalidValue);
  check_made_of_nodes(call, *instance);
  const std::shared_ptr<GraphNode> node = node_of(node_handle, instance->number);
  const bool is_there = node != nullptr && static_cast<std::size_t>(node->number) < instance->nodes.size();
  if (!is_there || !node->is_kernel) return recorded(line, kInvalidValue);
  line.number("graph", instance->number).number("instance", instance->instance).number("node", node->number);
  return recorded(line, describe_kernel(call, line, with));
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
