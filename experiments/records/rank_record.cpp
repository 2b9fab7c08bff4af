#include "experiments/records/rank_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "experiments/records/graphs.hpp"
#include "experiments/records/matrix_kernels.hpp"
#include "experiments/records/node_graphs.hpp"
#include "experiments/text/json.hpp"
#include "experiments/text/json_syntax.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;
using core::collective::Kind;
using import::JsonView;
using nlohmann::json;
using programs::CopyDirection;

constexpr std::int64_t kLargest = std::int64_t{1} << 50;
constexpr std::int64_t kMaxNumber = 1 << 24;  // of streams, events, communicators
constexpr std::int64_t kMaxRanks = 1 << 20;

/// Reads the lines of a record one after the other.
class Reader {
 public:
  Reader(const std::string& file, Words& words) : words_(words) { record_.file = file; }

  void line(std::string_view text, std::uint32_t number) {
    line_ = number;
    const int place = static_cast<int>(number);
    try {
      const json value = json::parse(text);
      if (!value.is_object()) throw InputError("every line must be an object");
      value_ = &value;
      read(JsonView(value, "the line"), value);
    } catch (const json::exception&) {
      const auto fault = import::find_json_fault(text);
      throw InputError("bad JSON: " + (fault ? fault->what : "a text or a number in it is none"), record_.file, place);
    } catch (const InputError& error) {
      if (error.located()) throw;
      throw InputError(error.what(), record_.file, place);
    }
  }

  RankRecord finish() {
    if (!has_header_) throw InputError("is empty; the first line of a record has \"call\":\"capture\"", record_.file);
    return std::move(record_);
  }

 private:
  using Read = void (Reader::*)(const JsonView&, Call&);
  struct Function {
    CallKind kind = CallKind::other;
    Read read = nullptr;
  };

  static const std::unordered_map<std::string_view, Function>& functions() {
    using enum CallKind;
    static const std::unordered_map<std::string_view, Function> all{
        {"cudaLaunchKernel", {launch, &Reader::read_launch}},
        {"cudaLaunchCooperativeKernel", {launch, &Reader::read_launch}},
        {"cudaLaunchKernelExC", {launch, &Reader::read_launch}},
        {"cublasLtMatmul", {product, &Reader::read_product}},
        {"cublasGemmEx", {product, &Reader::read_product}},
        {"cublasGemmStridedBatchedEx", {product, &Reader::read_product}},
        {"cublasSgemm", {product, &Reader::read_product}},
        {"cublasDgemm", {product, &Reader::read_product}},
        {"cublasHgemm", {product, &Reader::read_product}},
        {"cublasSgemmStridedBatched", {product, &Reader::read_product}},
        {"cudnnBackendExecute", {library_kernel, &Reader::read_execution}},
        {"cudnnBackendFinalize", {other, &Reader::read_plan}},
        {"cudaMemcpy", {copy, &Reader::read_copy}},
        {"cudaMemcpyAsync", {copy, &Reader::read_asynchronous_copy}},
        {"cudaMemcpyPeerAsync", {copy, &Reader::read_asynchronous_copy}},
        {"cudaMemcpyPeer", {copy, &Reader::read_copy}},
        {"cudaMemcpyToSymbol", {copy, &Reader::read_copy}},
        {"cudaMemcpyToSymbolAsync", {copy, &Reader::read_asynchronous_copy}},
        {"cudaMemcpyFromSymbol", {copy, &Reader::read_copy}},
        {"cudaMemcpyFromSymbolAsync", {copy, &Reader::read_asynchronous_copy}},
        {"cudaMemcpy2D", {copy, &Reader::read_copy}},
        {"cudaMemcpy2DAsync", {copy, &Reader::read_asynchronous_copy}},
        {"cudaMemset2D", {set, &Reader::read_set}},
        {"cudaMemset2DAsync", {set, &Reader::read_set}},
        {"cudaMallocPitch", {allocate, &Reader::read_allocation}},
        {"cudaStreamAddCallback", {host_function, &Reader::read_on_stream}},
        {"cudaMemset", {set, &Reader::read_set}},
        {"cudaMemsetAsync", {set, &Reader::read_set}},
        {"cudaMalloc", {allocate, &Reader::read_allocation}},
        {"cudaMallocAsync", {allocate, &Reader::read_allocation}},
        {"cudaMallocFromPoolAsync", {allocate, &Reader::read_allocation}},
        {"cudaFreeAsync", {release, &Reader::read_asynchronous_release}},
        {"cudaMallocHost", {other, nullptr}},
        {"cudaHostAlloc", {other, nullptr}},
        {"cudaMallocManaged", {other, nullptr}},
        {"cudaFree", {release, &Reader::read_release}},
        {"cudaFreeHost", {other, nullptr}},
        {"cudaHostRegister", {other, &Reader::read_registration}},
        {"cudaHostUnregister", {other, nullptr}},
        {"cudaStreamCreate", {create_stream, &Reader::read_stream}},
        {"cudaStreamCreateWithFlags", {create_stream, &Reader::read_stream}},
        {"cudaStreamCreateWithPriority", {create_stream, &Reader::read_stream}},
        {"cudaStreamSynchronize", {synchronise_stream, &Reader::read_on_stream}},
        {"cudaEventRecord", {record_event, &Reader::read_event_and_stream}},
        {"cudaEventRecordWithFlags", {record_event, &Reader::read_event_and_stream}},
        {"cudaStreamWaitEvent", {wait_event, &Reader::read_event_and_stream}},
        {"cudaEventSynchronize", {synchronise_event, &Reader::read_event}},
        {"cudaDeviceSynchronize", {synchronise_device, &Reader::read_device}},
        {"cudaSetDevice", {set_device, &Reader::read_device}},
        {"cudaLaunchHostFunc", {host_function, &Reader::read_on_stream}},
        {"cudaStreamBeginCapture", {other, &Reader::begin_graph}},
        {"cudaStreamEndCapture", {other, &Reader::end_graph}},
        {"cudaGraphCreate", {other, &Reader::create_graph}},
        {"cudaGraphAddKernelNode", {launch, &Reader::add_node<&Reader::read_kernel>}},
        {"cudaGraphAddMemcpyNode", {copy, &Reader::add_node<&Reader::read_copied>}},
        {"cudaGraphAddMemsetNode", {set, &Reader::add_node<&Reader::read_set_bytes>}},
        {"cudaGraphAddHostNode", {host_function, &Reader::add_node<nullptr>}},
        {"cudaGraphAddEmptyNode", {other, &Reader::add_node<nullptr>}},
        {"cudaGraphAddDependencies", {other, &Reader::add_dependencies}},
        {"cudaGraphKernelNodeSetParams", {launch, &Reader::set_node}},
        {"cudaGraphExecKernelNodeSetParams", {launch, &Reader::set_node}},
        {"cudaGraphInstantiate", {other, &Reader::instantiate}},
        {"cudaGraphExecUpdate", {other, &Reader::update}},
        {"cudaGraphLaunch", {launch_graph, &Reader::launch_graph}},
        {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", {other, &Reader::read_occupancy}},
        {"cudaFuncGetAttributes", {other, &Reader::read_occupancy}},
        {"cudaProfilerStart", {start_profiler, nullptr}},
        {"cudaProfilerStop", {stop_profiler, nullptr}},
        {"ncclCommInitRank", {open_communicator, &Reader::read_communicator}},
        {"ncclCommInitRankConfig", {open_communicator, &Reader::read_communicator}},
        {"ncclCommSplit", {open_communicator, &Reader::read_split}},
        {"ncclAllReduce", {collective, &Reader::read_collective<Kind::all_reduce>}},
        {"ncclAllGather", {collective, &Reader::read_collective<Kind::all_gather>}},
        {"ncclReduceScatter", {collective, &Reader::read_collective<Kind::reduce_scatter>}},
        {"ncclBroadcast", {collective, &Reader::read_collective<Kind::broadcast>}},
        {"ncclReduce", {collective, &Reader::read_collective<Kind::reduce>}},
        {"ncclSend", {send, &Reader::read_collective<Kind::send>}},
        {"ncclRecv", {receive, &Reader::read_collective<Kind::send>}}};
    return all;
  }
  static const Function* function_of(const std::string& name) {
    static const Function library{CallKind::library_kernel, &Reader::read_library_kernel};
    if (is_library_kernel(name)) return &library;
    const auto known = functions().find(name);
    return known == functions().end() ? nullptr : &known->second;
  }
  void read(const JsonView& line, const json& value) {
    const std::string& name = line.at("call").text();
    if (!has_header_) {
      if (name != "capture") throw InputError("the first line must be that of a capture, \"call\":\"capture\"");
      has_header_ = true;
      return read_header(line);
    }
    if (record_.has_end || !record_.stopped.empty()) throw InputError("stands behind the end of its record");
    if (name == "end") return static_cast<void>(record_.has_end = true);
    if (name == "stopped") return static_cast<void>(record_.stopped = line.at("because").text());
    const Function* known = function_of(name);
    if (known == nullptr && !is_without_part(name) && !value.contains("cudnn_error")) refuse(name);
    Call call;
    call.line = line_;
    call.thread = static_cast<std::int32_t>(line.at("thread").whole(0, kMaxNumber));
    const bool has_failed = value.contains("error") || value.contains("nccl_error") || value.contains("cublas_error") ||
                            value.contains("cudnn_error");
    if (has_failed) return static_cast<void>(++record_.failed);
    if (value.contains("beyond_allocation")) ++record_.beyond;
    if (known == nullptr) return;
    call.kind = known->kind;
    call.name = words_(name);
    if (known->read != nullptr) (this->*known->read)(line, call);
    if (call.kind == CallKind::other) return;
    if (call.form == 0) call.form = form(call).value();
    if (graphs_.keep(call)) return;
    record_.calls.push_back(call);
    if (call.kind != CallKind::launch_graph) return;
    if (nodes_.has(call.number))
      nodes_.launch(static_cast<std::int32_t>(call.detail), call, record_.calls);
    else
      graphs_.launch(call, record_.calls);
  }

  [[noreturn]] static void refuse(const std::string& name) {
    if (name == "capture") throw InputError("a capture begins in the first line alone");
    std::vector<std::string> names;
    for (const auto& [one, ignored] : functions()) names.emplace_back(one);
    std::sort(names.begin(), names.end());
    const std::string near = suggestion(name, names);
    throw InputError(fmt::format("records of version 1 have no call '{}'{}", name.substr(0, 80),
                                 near.starts_with("; did") ? near : std::string()));
  }

  static Form form(const Call& call) {
    return Form()
        .add(static_cast<std::uint64_t>(call.kind))
        .add(call.name)
        .add_signed(call.stream)
        .add_signed(call.thread);
  }

  void read_header(const JsonView& line) {
    if (const std::int64_t version = line.at("version").whole(); version != 1)
      throw InputError(fmt::format("is of version {} of records; this program reads version 1", version));
    record_.world = static_cast<std::int32_t>(line.at("world").whole(1, kMaxRanks));
    record_.rank = static_cast<std::int32_t>(line.at("rank").whole(0, record_.world - 1));
    record_.gpu = line.at("gpu").text();
  }

  std::int32_t number_of(const JsonView& line, const char* member) const {
    return static_cast<std::int32_t>(line.at(member).whole(0, kMaxNumber));
  }
  void read_on_stream(const JsonView& line, Call& call) {
    call.stream = number_of(line, "stream");
    if (call.stream >= 2 && static_cast<std::size_t>(call.stream - 2) >= record_.streams.size())
      throw InputError(fmt::format("stream {} was not created before", call.stream));
  }
  void begin_graph(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    graphs_.begin(call.stream, number_of(line, "graph"));
  }
  void end_graph(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    graphs_.end(number_of(line, "graph"));
  }
  /// `detail` of the launch of a graph that was made node by node is the instance.
  void launch_graph(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    call.number = number_of(line, "graph");
    const bool is_of_nodes = nodes_.has(call.number);
    if (is_of_nodes) call.detail = static_cast<std::uint32_t>(number_of(line, "instance"));
    const std::uint64_t inside =
        is_of_nodes ? nodes_.form_of(static_cast<std::int32_t>(call.detail)) : graphs_.form_of(call.number);
    call.form = form(call).add(inside).value();
  }

  std::vector<std::int32_t> numbers_of(const JsonView& line, const char* member) const {
    std::vector<std::int32_t> numbers;
    line.at(member).for_each(
        [&](const JsonView& one) { numbers.push_back(static_cast<std::int32_t>(one.whole(0, kMaxNumber))); });
    return numbers;
  }
  void create_graph(const JsonView& line, Call&) { nodes_.create(number_of(line, "graph")); }
  /// What a node does is a call that its graph keeps; the call that adds it has no part in a step.
  template <Read kRead>
  void add_node(const JsonView& line, Call& call) {
    if constexpr (kRead != nullptr) (this->*kRead)(line, call);
    if (call.form == 0) call.form = form(call).value();
    nodes_.add(number_of(line, "graph"), number_of(line, "node"), numbers_of(line, "after"), call);
    call.kind = CallKind::other;
  }
  void add_dependencies(const JsonView& line, Call&) {
    nodes_.add_dependencies(number_of(line, "graph"), numbers_of(line, "from"), numbers_of(line, "to"));
  }
  void set_node(const JsonView& line, Call& call) {
    read_kernel(line, call);
    const std::int32_t node = number_of(line, "node");
    if (line.find("instance"))
      nodes_.set_node_of_instance(number_of(line, "instance"), node, call);
    else
      nodes_.set_node(number_of(line, "graph"), node, call);
    call.kind = CallKind::other;
  }
  void instantiate(const JsonView& line, Call&) {
    const std::int32_t graph = number_of(line, "graph");
    if (nodes_.has(graph)) nodes_.instantiate(graph, number_of(line, "instance"));
  }
  /// Launches of one that was captured name the other graph from then on.
  void update(const JsonView& line, Call&) {
    const std::int32_t graph = number_of(line, "graph");
    if (nodes_.has(graph)) nodes_.update(number_of(line, "instance"), graph);
  }
  void read_occupancy(const JsonView& line, Call&) { ++record_.occupancy_queries[words_(line.at("kernel").text())]; }
  void read_event(const JsonView& line, Call& call) { call.number = number_of(line, "event"); }
  void read_device(const JsonView& line, Call& call) { call.number = number_of(line, "device"); }
  void read_event_and_stream(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    read_event(line, call);
  }

  void read_stream(const JsonView& line, Call& call) {
    call.stream = number_of(line, "stream");
    if (call.stream != static_cast<std::int32_t>(record_.streams.size()) + 2)
      throw InputError(fmt::format("streams are numbered from 2 in the order of their creation: this is {}, not {}",
                                   record_.streams.size() + 2, call.stream));
    record_.streams.push_back({line.at("flags").whole(0, 1) == 0, number_of(line, "device")});
  }

  std::array<std::int64_t, 3> extent(const JsonView& value) const {
    std::array<std::int64_t, 3> extent{};
    std::size_t axis = 0;
    value.for_each([&](const JsonView& one) {
      if (axis < 3) extent[axis] = one.whole(1, UINT32_MAX);
      ++axis;
    });
    if (axis != 3) throw InputError("'grid' and 'block' must have three numbers");
    return extent;
  }

  void read_launch(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    read_kernel(line, call);
  }
  void read_kernel(const JsonView& line, Call& call) {
    call.name = words_(line.at("kernel").text());
    call.detail = static_cast<std::uint32_t>(record_.launches.size());
    Launch launch;
    launch.grid = extent(line.at("grid")), launch.block = extent(line.at("block"));
    launch.shared_bytes = line.at("shared_bytes").whole(0, kLargest);
    launch.arguments = static_cast<std::uint32_t>(record_.arguments.size());
    if (const auto arguments = value_->find("arguments"); arguments != value_->end() && arguments->is_array())
      for (const json& one : *arguments) record_.arguments.push_back(argument(one));
    launch.argument_count = static_cast<std::uint32_t>(record_.arguments.size()) - launch.arguments;
    record_.launches.push_back(launch);
    Form of = form(call);
    for (const std::int64_t threads : launch.block) of.add_signed(threads);
    call.form = of.value();
  }
  /// A number, or NaN for what is none: pointers, texts, and what could not be read.
  static double argument(const json& value) {
    if (value.is_number()) return value.get<double>();
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    return std::nan("");
  }

  void read_product(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    call.detail = static_cast<std::uint32_t>(record_.products.size());
    const Product product = record_.products.emplace_back(product_of(line, words_));
    call.form = form(call).add_shape(product.shape).add(product.dtype).value();
  }

  /// A plan of cuDNN's is read where it becomes final; other lines of finalizing are of calls that failed.
  void read_plan(const JsonView& line, Call&) {
    plans_[number_of(line, "plan")] = library_kernel_of(line, words_, record_.library_kernels);
  }
  void read_execution(const JsonView& line, Call& call) {
    const auto plan = plans_.find(number_of(line, "plan"));
    if (plan == plans_.end()) throw InputError("executes a plan that was not finalized before");
    take_library_kernel(line, plan->second, call);
  }
  void read_library_kernel(const JsonView& line, Call& call) {
    take_library_kernel(line, library_kernel_of(line, words_, record_.library_kernels), call);
  }
  void take_library_kernel(const JsonView& line, const NamedKernel& kernel, Call& call) {
    read_on_stream(line, call);
    call.name = kernel.name, call.detail = kernel.number;
    call.form = form(call).add(kernel.form).value();
  }

  /// Sizes of copies between host and device follow data in some programs, and do not tell one step from another.
  void read_copy(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    read_copied(line, call);
    record_.copies.back().waits = line.at("direction").text() != "device_to_device";
  }
  void read_copied(const JsonView& line, Call& call) {
    call.bytes = line.at("bytes").whole(0, kLargest);
    call.detail = static_cast<std::uint32_t>(record_.copies.size());
    const std::string& direction = line.at("direction").text();
    Copy copy;
    copy.is_of_host = direction == "host_to_host";
    if (direction == "host_to_device") {
      copy.direction = CopyDirection::host_to_device;
    } else if (direction == "device_to_host") {
      copy.direction = CopyDirection::device_to_host;
    } else if (direction != "device_to_device" && !copy.is_of_host) {
      throw InputError(
          fmt::format("'direction' must be host_to_device, device_to_host, device_to_device or host_to_host, not '{}'",
                      direction.substr(0, 40)));
    }
    record_.copies.push_back(copy);
    call.form = form(call).add(static_cast<std::uint64_t>(copy.direction)).value();
  }
  /// The host waits for one into memory that it has not pinned (CUDA Runtime API, "API synchronization behavior").
  void read_asynchronous_copy(const JsonView& line, Call& call) {
    read_copy(line, call);
    Copy& copy = record_.copies.back();
    copy.waits =
        copy.direction == CopyDirection::device_to_host && value_->value("to", json()).is_string() && !has_registered_;
  }
  void read_set(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    read_set_bytes(line, call);
  }
  void read_set_bytes(const JsonView& line, Call& call) { call.bytes = line.at("bytes").whole(0, kLargest); }
  void read_registration(const JsonView&, Call&) { has_registered_ = true; }

  void read_allocation(const JsonView& line, Call& call) {
    call.bytes = line.at("bytes").whole(0, kLargest);
    if (call.bytes == 0) return static_cast<void>(call.kind = CallKind::other);
    call.form = form(call).add_signed(call.bytes).value();
    if (const auto counted = line.find("counted_bytes")) call.bytes = counted->whole(0, kLargest);
    call.number = number_of(line, "allocation");
    call.detail = static_cast<std::uint32_t>(number_of(line, "device"));
    if (!allocated_.emplace(call.number, call.bytes).second)
      throw InputError(fmt::format("allocation {} was made before", call.number));
  }
  void read_release(const JsonView& line, Call& call) {
    const JsonView pointer = line.at("pointer");
    if (pointer.is_null()) return static_cast<void>(call.kind = CallKind::other);
    std::vector<std::int64_t> place;
    pointer.for_each([&](const JsonView& one) { place.push_back(one.whole(0, kLargest)); });
    if (place.size() != 2) throw InputError("'pointer' must have two numbers: an allocation, and the place in it");
    const auto known = allocated_.find(static_cast<std::int32_t>(std::min<std::int64_t>(place[0], kMaxNumber)));
    if (known == allocated_.end()) return;  // of memory of the host, which is not counted
    call.number = known->first, call.bytes = -known->second;
    allocated_.erase(known);
  }

  void read_asynchronous_release(const JsonView& line, Call& call) {
    read_release(line, call);
    call.detail = kWithoutWait;
  }

  void read_communicator(const JsonView& line, Call& call) {
    call.number = number_of(line, "communicator");
    if (call.number != static_cast<std::int32_t>(record_.communicators.size()))
      throw InputError(
          fmt::format("communicators are numbered from 0 in the order of their creation: this is {}, not {}",
                      record_.communicators.size(), call.number));
    OpenedCommunicator opened;
    opened.key = line.at("key").text();
    opened.size = static_cast<std::int32_t>(line.at("size").whole(1, record_.world));
    opened.in_rank = static_cast<std::int32_t>(line.at("in_rank").whole(0, opened.size - 1));
    opened.line = line_;
    record_.communicators.push_back(opened);
  }

  void read_split(const JsonView& line, Call& call) {
    if (line.find("communicator")) return read_communicator(line, call);
    call.kind = CallKind::other;  // a rank without a color is in no group
  }

  template <Kind kKind>
  void read_collective(const JsonView& line, Call& call) {
    read_on_stream(line, call);
    call.number = number_of(line, "communicator");
    if (static_cast<std::size_t>(call.number) >= record_.communicators.size())
      throw InputError(fmt::format("communicator {} was not created before", call.number));
    const OpenedCommunicator& in = record_.communicators[static_cast<std::size_t>(call.number)];
    if (const auto group = line.find("group")) call.group = static_cast<std::int32_t>(group->whole(0, INT32_MAX));
    Communication of;
    of.kind = kKind;
    const std::string& type = line.at("dtype").text();
    of.element_bytes = element_bytes(type);
    if (of.element_bytes == 0) throw InputError(fmt::format("'dtype' is '{}', which NCCL has not", type.substr(0, 40)));
    of.dtype = words_(type);
    if (const auto reduction = line.find("reduction")) of.reduction = words_(reduction->text());
    of.count = line.at("count").whole(0, kLargest / in.size / of.element_bytes);
    const char* peer = kKind == Kind::broadcast || kKind == Kind::reduce ? "root"
                       : kKind != Kind::send                             ? nullptr
                       : call.kind == CallKind::send                     ? "to"
                                                                         : "from";
    if (peer != nullptr) of.peer = static_cast<std::int32_t>(line.at(peer).whole(0, in.size - 1));
    const bool is_gathered = kKind == Kind::all_gather || kKind == Kind::reduce_scatter;
    call.bytes = of.count * of.element_bytes * (is_gathered ? in.size : 1);
    call.detail = static_cast<std::uint32_t>(record_.communications.size());
    record_.communications.push_back(of);
    Form form_of = form(call);
    form_of.add_signed(call.number).add_signed(call.bytes).add(of.dtype).add_signed(of.peer);
    call.form = form_of.value();
  }

  Words& words_;
  RankRecord record_;
  const json* value_ = nullptr;                // of the line
  std::map<std::int32_t, NamedKernel> plans_;  // of cuDNN
  Graphs graphs_;
  NodeGraphs nodes_;
  std::unordered_map<std::int32_t, std::int64_t> allocated_;  // bytes by allocation, of those that are there
  std::uint32_t line_ = 0;
  bool has_header_ = false;
  bool has_registered_ = false;  // memory of the host, which the record does not tell from other
};

}  // namespace

bool is_record(std::string_view head) {
  return head.starts_with(R"({"call":"capture")");
}

RankRecord parse_record(std::string_view text, const std::string& file, Words& words) {
  Reader reader(file, words);
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++number;
    if (end > 0) reader.line(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

}  // namespace manyworlds::experiments::captured
