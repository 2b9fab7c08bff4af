// The state of a captured process. A runtime with C functions has no other place for it than the process, so this is
// the one room with a state that is not passed along; it lives until the process ends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "experiments/capture/device_memory.hpp"
#include "experiments/capture/kernel_arguments.hpp"
#include "experiments/capture/record.hpp"
#include "experiments/capture/settings.hpp"

namespace manyworlds::experiments::capture {

/// What a cudaStream_t points to. Number 0 is the legacy default stream, 1 that of each thread, others as they are
/// made.
struct Stream {
  int number, device;
  unsigned flags;
  int priority;
  int graph = -1;  // that is captured of it
};

/// What a cudaEvent_t points to, numbered from 0 as they are made.
struct Event {
  int number, device;
  unsigned flags;
  int graph = -1;  // that is captured of the stream on which it was recorded
};

/// What a cudaGraphNode_t points to: an operation of a graph that is made node by node, numbered from 0 in its graph.
struct GraphNode {
  int graph, number;
  bool is_kernel;
  std::function<void()> effect;  // on the host, at each launch; none of a kernel
  std::vector<int> after;        // nodes that it waits for
};

/// What a cudaGraph_t or a cudaGraphExec_t points to. Instances are numbered from 0, and -1 is a graph itself.
struct Graph {
  int number, instance = -1;
  bool is_captured = true;                                      // of streams, else made node by node
  std::vector<std::shared_ptr<const GraphNode>> nodes;          // of an instance: as they were when it was made
  std::shared_ptr<std::vector<std::function<void()>>> effects;  // of an instance, in their order
};

struct Kernel {
  std::string name;  // readable
  std::vector<Parameter> parameters;
  bool are_parameters_known = false;
  std::int64_t max_dynamic_shared_bytes = 48 << 10;  // as long as the program does not ask for more
};

/// A variable of device code, with its memory on each device that asked for it.
struct Variable {
  std::string name;  // readable
  std::size_t bytes = 0;
  std::map<int, void*> addresses;
};

/// What a ncclComm_t points to.
struct Communicator {
  int number, rank, size, device;
  std::string key;                      // which the program carried from the rank that asked for it to all others
  std::unordered_set<int> scaled = {};  // reductions that the program made
  int next_scaled = 0;
};

/// What stands between <<<>>> of a launch.
struct LaunchShape {
  Extent3 grid, block;
  std::size_t shared_bytes;
  void* stream;
};

/// What a thread of the program has of its own.
struct ThreadState {
  int number = -1, device = 0;
  Error last_error = kSuccess;
  int group_depth = 0, group = 0;   // of ncclGroupStart, and the number of the outermost one
  std::vector<LaunchShape> pushed;  // between <<<>>> and the launch that takes it
  std::string cudnn_error;          // what cudnnGetLastErrorString tells
};

struct Session {
  explicit Session(Settings given);
  Settings settings;
  Record record;
  DeviceMemory memory;
  std::unordered_map<const void*, Kernel> kernels;      // by the address of the host's function that launches it
  std::unordered_map<const void*, Variable> variables;  // by the address of the host's shadow of it
  std::unordered_set<Stream*> streams;
  std::unordered_set<Event*> events;
  std::unordered_set<Communicator*> communicators;
  std::unordered_set<Graph*> graphs;
  std::unordered_map<const void*, std::shared_ptr<GraphNode>> nodes;  // by their handle
  int next_stream = 2, next_event = 0, next_communicator = 0, next_key = 0, next_thread = 0, next_group = 0;
  int next_graph = 0, next_instance = 0, next_plan = 0;
  std::mutex mutex;
};

/// The session, which the first call of any function opens; settings that are wrong end the process with status 2.
Session& session();
ThreadState& thread_state();

/// Ends the process with status 2 and the message on standard error, and as the record's last line.
[[noreturn]] void end_capture(const std::string& message);
[[noreturn]] void end_unmodelled(const char* function);

/// Writes the line, and if there is an error, its number; remembers it as cudaGetLastError's, and returns it. The mutex
/// is held.
Error recorded(Line line, Error error = kSuccess);

/// The number of a stream handle; -1 if there is no such stream.
int stream_number(void* handle);
/// A pointer for the record: [allocation, offset], "null" or "host".
std::string place(const void* pointer);

}  // namespace manyworlds::experiments::capture
