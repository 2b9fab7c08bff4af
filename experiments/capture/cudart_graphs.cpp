// CUDA's functions of graphs that are captured of streams: what is given to a captured stream is recorded as ever, and
// is part of the graph by the lines where its capture begins and ends. After the CUDA Runtime API (graph management).
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

Graph* graph_of(void* handle) {
  Graph* graph = static_cast<Graph*>(handle);
  return session().graphs.contains(graph) ? graph : nullptr;
}

/// An instance of a graph is one more of its number.
Error instantiate(const char* call, void** out, void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  const Graph* graph = graph_of(handle);
  if (out == nullptr || graph == nullptr) return recorded(line, kInvalidValue);
  Graph* instance = new Graph(*graph);
  of.graphs.insert(instance);
  *out = instance;
  return recorded(line.number("graph", graph->number));
}

Error destroy(const char* call, void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Graph* graph = graph_of(handle);
  if (graph == nullptr) return recorded(Line(call), kInvalidValue);
  const int number = graph->number;
  of.graphs.erase(graph);
  delete graph;
  return recorded(Line(call).number("graph", number));
}

Error on_stream(const char* call, void* handle, void* stream) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  const Graph* graph = graph_of(handle);
  if (graph == nullptr) return recorded(line, kInvalidValue);
  const int number = stream_number(stream);
  return recorded(line.number("graph", graph->number).number("stream", number), number < 0 ? kInvalidHandle : kSuccess);
}

}  // namespace

extern "C" {

Error cudaStreamBeginCapture(void* handle, int) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  const int number = stream_number(handle);
  Line line = Line("cudaStreamBeginCapture").number("stream", number);
  if (number < 0) return recorded(line, kInvalidHandle);
  if (number < 2) return recorded(line, kNotForLegacyStream);
  Stream& stream = *static_cast<Stream*>(handle);
  if (stream.graph >= 0) return recorded(line, kIllegalState);
  stream.graph = of.next_graph++;
  return recorded(line.number("graph", stream.graph));
}

Error cudaStreamEndCapture(void* handle, void** out) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  const int number = stream_number(handle);
  Line line = Line("cudaStreamEndCapture").number("stream", number);
  if (number < 2 || out == nullptr) return recorded(line, number < 0 ? kInvalidHandle : kInvalidValue);
  const int graph = static_cast<Stream*>(handle)->graph;
  if (graph < 0) return recorded(line, kIllegalState);
  for (Stream* stream : of.streams)
    if (stream->graph == graph) stream->graph = -1;
  for (Event* event : of.events)
    if (event->graph == graph) event->graph = -1;
  Graph* fresh = new Graph{graph};
  of.graphs.insert(fresh);
  *out = fresh;
  return recorded(line.number("graph", graph));
}

/// cudaStreamCaptureStatus: 0 none, 1 active.
Error cudaStreamIsCapturing(void* handle, int* out) {
  const std::lock_guard lock(session().mutex);
  const int number = stream_number(handle);
  if (number < 0 || out == nullptr) return recorded(Line("cudaStreamIsCapturing"), kInvalidHandle);
  *out = number >= 2 && static_cast<Stream*>(handle)->graph >= 0 ? 1 : 0;
  return recorded(Line("cudaStreamIsCapturing").number("stream", number));
}

Error cudaGraphInstantiate(void** out, void* graph, unsigned long long) {
  return instantiate("cudaGraphInstantiate", out, graph);
}
Error cudaGraphInstantiateWithFlags(void** out, void* graph, unsigned long long) {
  return instantiate("cudaGraphInstantiate", out, graph);
}
Error cudaGraphLaunch(void* instance, void* stream) {
  return on_stream("cudaGraphLaunch", instance, stream);
}
Error cudaGraphUpload(void* instance, void* stream) {
  return on_stream("cudaGraphUpload", instance, stream);
}
Error cudaGraphDestroy(void* graph) {
  return destroy("cudaGraphDestroy", graph);
}
Error cudaGraphExecDestroy(void* instance) {
  return destroy("cudaGraphExecDestroy", instance);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
