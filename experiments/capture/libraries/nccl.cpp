// NCCL in a claimed world: each rank issues its own collectives and none waits for another, so that one rank of many
// can be captured alone. After the NCCL documentation (API: communicators, collectives, group calls, point to point).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "experiments/capture/libraries/library_types.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

using namespace nccl;  // values of its boundary

constexpr int kVersion = 22800;  // of the API that is stood in for, 2.28.0

Result noted(Line line, Result result = kFine) {
  if (result != kFine) line.number("nccl_error", result);
  recorded(line);
  return result;
}

Communicator* communicator(void* handle) {
  Communicator* of = static_cast<Communicator*>(handle);
  return session().communicators.contains(of) ? of : nullptr;
}

/// The buffers of a call: how many times `count` elements each holds; null if the call has none.
struct Buffer {
  const char* role;
  const void* address;
  std::size_t times;
};

/// Whether a device reads and writes the buffer without a fault. What is beyond the program's allocation, and within
/// what rounding added to it, is an error of the program that devices do not report: the line says so.
bool is_reached(const Buffer& buffer, std::size_t count, int element_bytes, Line& line) {
  if (buffer.role == nullptr || count == 0) return true;
  const auto found = session().memory.find(buffer.address);
  constexpr std::size_t kBeyondAnyBuffer = std::size_t{1} << 46;
  if (!found || count > kBeyondAnyBuffer / buffer.times / static_cast<std::size_t>(element_bytes)) return false;
  const Reach reach = found->reach(count * buffer.times * static_cast<std::size_t>(element_bytes));
  if (reach == Reach::beyond) line.text("beyond_allocation", buffer.role);
  return reach != Reach::fault;
}

struct Asked {
  const char* call;
  Buffer send, receive;
  std::size_t count;
  int type;
  std::optional<int> reduction;
  const char* peer_role;  // "root", "to" or "from"; null: none
  int peer;
};

Result communicate(const Asked& asked, void* handle, void* stream) {
  Line line(asked.call);
  const Communicator* of = communicator(handle);
  if (of == nullptr) return noted(line, kInvalidArgument);
  line.number("communicator", of->number).number("count", static_cast<std::int64_t>(asked.count));
  const bool is_type = asked.type >= 0 && asked.type < static_cast<int>(std::size(kDataTypes));
  if (!is_type) return noted(line.number("dtype", asked.type), kInvalidArgument);
  const DataType& type = kDataTypes[asked.type];
  line.text("dtype", type.name);
  if (asked.reduction) {
    const bool is_own = of->scaled.contains(*asked.reduction);
    if (!is_own && (*asked.reduction < 0 || *asked.reduction >= static_cast<int>(std::size(kReductions))))
      return noted(line.number("reduction", *asked.reduction), kInvalidArgument);
    line.text("reduction", is_own ? "scaled_sum" : kReductions[*asked.reduction]);
  }
  if (asked.peer_role != nullptr) {
    line.number(asked.peer_role, asked.peer);
    if (asked.peer < 0 || asked.peer >= of->size) return noted(line, kInvalidArgument);
  }
  for (const Buffer& buffer : {asked.send, asked.receive})
    if (buffer.role != nullptr) line.json(buffer.role, place(buffer.address));
  line.number("stream", stream_number(stream));
  if (thread_state().group_depth > 0) line.number("group", thread_state().group);
  const bool fits =
      is_reached(asked.send, asked.count, type.bytes, line) && is_reached(asked.receive, asked.count, type.bytes, line);
  return noted(line, fits && stream_number(stream) >= 0 ? kFine : kInvalidArgument);
}

Result locked(const Asked& asked, void* handle, void* stream) {
  const std::lock_guard lock(session().mutex);
  return communicate(asked, handle, stream);
}

/// How many ranks the communicator has; 1 if there is none, which the call itself reports.
std::size_t size_of(void* handle) {
  const std::lock_guard lock(session().mutex);
  const Communicator* of = communicator(handle);
  return of == nullptr ? 1 : static_cast<std::size_t>(of->size);
}

Result open(const char* call, void** out, int size, const UniqueId& id, int rank) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  const std::string key(id.key, strnlen(id.key, sizeof id.key));
  Line line(call);
  line.text("key", key).number("size", size).number("in_rank", rank);
  if (out == nullptr || rank < 0 || rank >= size) return noted(line, kInvalidArgument);
  if (size > of.settings.world)
    end_capture(std::string(call) + ": a communicator of " + std::to_string(size) + " ranks, but MANYWORLDS_WORLD is " +
                std::to_string(of.settings.world));
  if (!key.starts_with("manyworlds "))
    end_capture(std::string(call) +
                ": the id is not one of ncclGetUniqueId of a captured rank; the program has to carry it "
                "from the rank that asked for it to the others, as in a real run");
  Communicator* fresh = new Communicator{of.next_communicator++, rank, size, thread_state().device, key};
  of.communicators.insert(fresh);
  *out = fresh;
  return noted(line.number("communicator", fresh->number).number("device", fresh->device));
}

/// A rank does not know the colours of others, so that the groups of a split are asked for before.
Result split(void* parent, int color, void** out) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line("ncclCommSplit");
  const Communicator* from = communicator(parent);
  if (from == nullptr || out == nullptr || color < kNoColor) return noted(line, kInvalidArgument);
  line.number("parent", from->number).number("color", color);
  *out = nullptr;
  if (color == kNoColor) return noted(line);
  const int number = of.next_communicator;
  const auto group = of.settings.groups.find(number);
  if (group == of.settings.groups.end())
    end_capture("ncclCommSplit: which ranks have the color of this one is not known for communicator " +
                std::to_string(number) + ": name its groups by --groups, as {\"" + std::to_string(number) +
                "\": [[...], ...]}");
  const std::vector<int>& ranks = group->second;
  const auto in_rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), of.settings.rank) - ranks.begin());
  const std::string key = from->key + " split " + std::to_string(number) + "." + std::to_string(ranks.front());
  Communicator* fresh =
      new Communicator{of.next_communicator++, in_rank, static_cast<int>(ranks.size()), from->device, key};
  of.communicators.insert(fresh);
  *out = fresh;
  line.text("key", key).number("size", fresh->size).number("in_rank", in_rank);
  return noted(line.number("communicator", number).number("device", fresh->device));
}

Result close(const char* call, void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Communicator* found = communicator(handle);
  Line line(call);
  if (found == nullptr) return noted(line, kInvalidArgument);
  line.number("communicator", found->number);
  of.communicators.erase(found);
  delete found;
  return noted(line);
}

Result ask(void* handle, int* out, int Communicator::*member) {
  const std::lock_guard lock(session().mutex);
  const Communicator* of = communicator(handle);
  if (of == nullptr || out == nullptr) return kInvalidArgument;
  *out = of->*member;
  return kFine;
}

constexpr Buffer kNone{nullptr, nullptr, 1};

}  // namespace

extern "C" {

Error cudaMalloc(void** out, std::size_t bytes);
Error cudaFree(void* address);

Result ncclGetVersion(int* out) {
  if (out == nullptr) return kInvalidArgument;
  *out = kVersion;
  return kFine;
}

/// The id says which rank asked and how often, so that the members of a communicator are found again in their records.
Result ncclGetUniqueId(UniqueId* out) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  if (out == nullptr) return noted(Line("ncclGetUniqueId"), kInvalidArgument);
  *out = {};
  std::snprintf(out->key, sizeof out->key, "manyworlds %d.%d", of.settings.rank, of.next_key++);
  return noted(Line("ncclGetUniqueId").text("key", out->key));
}

Result ncclCommInitRank(void** out, int size, UniqueId id, int rank) {
  return open("ncclCommInitRank", out, size, id, rank);
}
/// The configuration is not read: it chooses how NCCL runs, not what it does.
Result ncclCommInitRankConfig(void** out, int size, UniqueId id, int rank, void*) {
  return open("ncclCommInitRankConfig", out, size, id, rank);
}
/// The order of ranks is that of the group that was named; a configuration is not read.
Result ncclCommSplit(void* parent, int color, int, void** out, void*) {
  return split(parent, color, out);
}
Result ncclCommDestroy(void* handle) {
  return close("ncclCommDestroy", handle);
}
Result ncclCommAbort(void* handle) {
  return close("ncclCommAbort", handle);
}
Result ncclCommFinalize(void* handle) {
  const std::lock_guard lock(session().mutex);
  return communicator(handle) == nullptr ? kInvalidArgument : kFine;
}
Result ncclCommCount(void* handle, int* out) {
  return ask(handle, out, &Communicator::size);
}
Result ncclCommUserRank(void* handle, int* out) {
  return ask(handle, out, &Communicator::rank);
}
Result ncclCommCuDevice(void* handle, int* out) {
  return ask(handle, out, &Communicator::device);
}
Result ncclCommGetAsyncError(void* handle, Result* out) {
  const std::lock_guard lock(session().mutex);
  if (communicator(handle) == nullptr || out == nullptr) return kInvalidArgument;
  *out = kFine;
  return kFine;
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case kFine:
      return "no error";
    case kFailedCuda:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    default:
      return "unknown result code";
  }
}
const char* ncclGetLastError(void*) {
  return "";
}

/// A sum of what each rank scales: the factor is a value of the program, and the bytes are those of a sum.
Result ncclRedOpCreatePreMulSum(int* out, void* scalar, int type, int, void* handle) {
  const std::lock_guard lock(session().mutex);
  Line line("ncclRedOpCreatePreMulSum");
  Communicator* of = communicator(handle);
  const bool is_type = type >= 0 && type < static_cast<int>(std::size(kDataTypes));
  if (of == nullptr || out == nullptr || scalar == nullptr || !is_type) return noted(line, kInvalidArgument);
  *out = kFirstMadeReduction + of->next_scaled++;
  of->scaled.insert(*out);
  return noted(line.number("communicator", of->number).number("reduction", *out));
}
Result ncclRedOpDestroy(int reduction, void* handle) {
  const std::lock_guard lock(session().mutex);
  Communicator* of = communicator(handle);
  const Line line = Line("ncclRedOpDestroy").number("reduction", reduction);
  return noted(line, of != nullptr && of->scaled.erase(reduction) == 1 ? kFine : kInvalidArgument);
}

/// Memory that NCCL allocates is the device's, as cudaMalloc's is; what is registered stays where it is.
Result ncclMemAlloc(void** out, std::size_t bytes) {
  return cudaMalloc(out, bytes) == kSuccess ? kFine : kFailedCuda;
}
Result ncclMemFree(void* address) {
  return cudaFree(address) == kSuccess ? kFine : kFailedCuda;
}
Result ncclCommRegister(void* in, void* buffer, std::size_t bytes, void** out) {
  const std::lock_guard lock(session().mutex);
  const Line line =
      Line("ncclCommRegister").json("pointer", place(buffer)).number("bytes", static_cast<std::int64_t>(bytes));
  if (communicator(in) == nullptr || out == nullptr || buffer == nullptr) return noted(line, kInvalidArgument);
  *out = buffer;
  return noted(line);
}
Result ncclCommDeregister(void* in, void*) {
  const std::lock_guard lock(session().mutex);
  return noted(Line("ncclCommDeregister"), communicator(in) == nullptr ? kInvalidArgument : kFine);
}

Result ncclGroupStart() {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  ThreadState& state = thread_state();
  if (state.group_depth++ == 0) state.group = of.next_group++;
  return kFine;
}
Result ncclGroupEnd() {
  ThreadState& state = thread_state();
  if (state.group_depth == 0) return kInvalidUsage;
  --state.group_depth;
  return kFine;
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, int type, int reduction, void* in, void* stream) {
  return locked({"ncclAllReduce", {"send", from, 1}, {"receive", to, 1}, count, type, reduction, nullptr, 0}, in,
                stream);
}
Result ncclAllGather(const void* from, void* to, std::size_t count, int type, void* in, void* stream) {
  const std::size_t ranks = size_of(in);
  return locked({"ncclAllGather", {"send", from, 1}, {"receive", to, ranks}, count, type, {}, nullptr, 0}, in, stream);
}
Result ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int reduction, void* in,
                         void* stream) {
  const std::size_t ranks = size_of(in);
  return locked({"ncclReduceScatter", {"send", from, ranks}, {"receive", to, 1}, count, type, reduction, nullptr, 0},
                in, stream);
}
/// The send buffer counts at the root alone, as the receive buffer of ncclReduce does.
Result ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* in, void* stream) {
  int rank = -1;
  ncclCommUserRank(in, &rank);
  const Buffer send = rank == root ? Buffer{"send", from, 1} : kNone;
  return locked({"ncclBroadcast", send, {"receive", to, 1}, count, type, {}, "root", root}, in, stream);
}
Result ncclBcast(void* data, std::size_t count, int type, int root, void* in, void* stream) {
  return ncclBroadcast(data, data, count, type, root, in, stream);
}
Result ncclReduce(const void* from, void* to, std::size_t count, int type, int reduction, int root, void* in,
                  void* stream) {
  int rank = -1;
  ncclCommUserRank(in, &rank);
  const Buffer receive = rank == root ? Buffer{"receive", to, 1} : kNone;
  return locked({"ncclReduce", {"send", from, 1}, receive, count, type, reduction, "root", root}, in, stream);
}
Result ncclSend(const void* from, std::size_t count, int type, int peer, void* in, void* stream) {
  return locked({"ncclSend", {"send", from, 1}, kNone, count, type, {}, "to", peer}, in, stream);
}
Result ncclRecv(void* to, std::size_t count, int type, int peer, void* in, void* stream) {
  return locked({"ncclRecv", kNone, {"receive", to, 1}, count, type, {}, "from", peer}, in, stream);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
