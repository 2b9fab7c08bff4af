// Small exports of Nsight Systems, written by SQLite itself with the tables and columns of `nsys export`, in
// microseconds. Their sizes and times are those that a test gives; nothing else is in them.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/nsys/read_nsys.hpp"
#include "tests/temporary_folder.hpp"

namespace manyworlds::tests {

/// Where rows are of: a process, a thread of it and a GPU.
struct Place {
  std::int64_t process = 100, thread = 1, device = 0;
  std::int64_t global_pid() const { return process << 24; }
  std::int64_t global_tid() const { return global_pid() + thread; }
};

class ExportDatabase {
 public:
  explicit ExportDatabase(const std::filesystem::path& path) : path_(path.string()) {
    if (sqlite3_open(path_.c_str(), &database_) != SQLITE_OK) throw std::runtime_error(path_);
    run("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');"
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
        "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, smCount INT);"
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT, contextId INT, "
        "streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT, gridX INT, graphNodeId INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT, correlationId "
        "INT, "
        "nameId INT, returnValue INT, callchainId INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT, "
        "correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, contextId INT, streamId INT, "
        "correlationId INT, globalPid INT, bytes INT, value INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT, contextId INT, streamId "
        "INT, "
        "correlationId INT, globalPid INT, syncType INT, eventId INT, eventSyncId INT);"
        "CREATE TABLE ENUM_CUDA_MEM_KIND (id INT, name TEXT, label TEXT);"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable');"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned');"
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT, domainId "
        "INT, "
        "jsonText TEXT, binaryData BLOB);"
        "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, flags INT, type INT, name "
        "TEXT, "
        "description TEXT, arrayOrUnionDetail INT, offset INT);");
    // NCCL's (src/include/nvtx_payload_schemas.h): a communicator's creation; a collective; with root; with peer.
    fields(1, {{18, "NCCL communicator ID", 0}, {5, "No. of ranks", 8}, {5, "Rank", 12}, {5, "CUDA device", 16}});
    fields(2, {{18, "NCCL communicator ID", 0}, {22, "Message size [bytes]", 8}});
    fields(3, {{18, "NCCL communicator ID", 0}, {22, "Message size [bytes]", 8}, {5, "Root", 16}});
    fields(4, {{18, "NCCL communicator ID", 0}, {22, "Message size [bytes]", 8}, {5, "Peer rank", 16}});
  }
  ~ExportDatabase() { sqlite3_close(database_); }
  ExportDatabase(const ExportDatabase&) = delete;
  ExportDatabase& operator=(const ExportDatabase&) = delete;

  void run(const std::string& sql) {
    char* error = nullptr;
    if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, &error) != SQLITE_OK)
      throw std::runtime_error(sql + ": " + error);
  }

  ExportDatabase& call(const std::string& name, double start, double duration, int correlation,
                       const Place& place = {}) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {}, {}, {}, 0, NULL)", ns(start),
                    ns(start + duration), place.global_tid(), correlation, string_id(name + "_v3020")));
    return *this;
  }
  ExportDatabase& kernel(const std::string& name, double start, double duration, int stream, int correlation,
                         const Place& place = {}, const std::string& graph_node = "NULL") {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 1, {}, {}, {}, {}, {}, 1, {})",
                    ns(start), ns(start + duration), place.device, stream, correlation, place.global_pid(),
                    string_id(name), string_id(name), graph_node));
    return *this;
  }
  /// A launch of 5 us that begins at a time, and its kernel.
  ExportDatabase& launched(const std::string& name, double launch, double start, double duration, int stream,
                           int correlation, const Place& place = {}) {
    call("cudaLaunchKernel", launch, 5, correlation, place);
    return kernel(name, start, duration, stream, correlation, place);
  }
  ExportDatabase& copy(int kind, std::int64_t bytes, double start, double duration, int stream, int correlation,
                       int source_kind, const Place& place = {}) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, {}, 1, {}, {}, {}, {}, {}, {}, 2)",
                    ns(start), ns(start + duration), place.device, stream, correlation, place.global_pid(), bytes, kind,
                    source_kind));
    return *this;
  }
  /// A row of the table of synchronizations; a number below 0 is CUPTI's for none.
  ExportDatabase& sync(int type, std::int64_t stream, std::int64_t event, int correlation, std::int64_t event_sync = -1,
                       const Place& place = {}) {
    const auto number = [](std::int64_t value) { return value < 0 ? std::int64_t{0xffffffff} : value; };
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (0, 0, {}, 1, {}, {}, {}, {}, {}, {})",
                    place.device, number(stream), correlation, place.global_pid(), type, number(event),
                    event_sync < 0 ? "NULL" : fmt::format("{}", event_sync)));
    return *this;
  }
  ExportDatabase& event(int stream, std::int64_t event, int correlation, std::int64_t event_sync = -1,
                        const Place& place = {}) {
    run("CREATE TABLE IF NOT EXISTS CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT, contextId INT, streamId INT, "
        "correlationId INT, globalPid INT, eventId INT, eventSyncId INT);");
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES ({}, 1, {}, {}, {}, {}, {})", place.device,
                    stream, correlation, place.global_pid(), event,
                    event_sync < 0 ? "NULL" : fmt::format("{}", event_sync)));
    return *this;
  }
  /// A range whose text is a registered string, with a payload of a schema or without (0).
  ExportDatabase& range(const std::string& text, double start, double duration, const Place& place = {}, int schema = 0,
                        const std::vector<std::uint64_t>& payload = {}) {
    run(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, NULL, {}, {}, 1, NULL, {})", ns(start),
                    ns(start + duration), string_id(text), place.global_tid(),
                    schema == 0 ? "NULL" : blob(schema, payload)));
    return *this;
  }
  ExportDatabase& creation(std::uint64_t communicator, std::uint64_t ranks, std::uint64_t rank,
                           const Place& place = {}) {
    const auto device = static_cast<std::uint64_t>(place.device);
    return range("ncclCommInitRankConfig", -100, 10, place, 1, {communicator, ranks | rank << 32, device});
  }
  /// A call of NCCL that lasts 20 us, in which its kernel is launched 5 us after it began.
  ExportDatabase& collective(const std::string& name, std::uint64_t communicator, std::uint64_t bytes, double begin,
                             double start, double duration, int correlation, const Place& place = {}, int schema = 2,
                             std::uint64_t other = 0) {
    range(name, begin, 20, place, schema, {communicator, bytes, other});
    return launched("ncclDevKernel_" + name.substr(4) + "_RING_LL(ncclDevKernelArgsStorage<4096ul>)", begin + 5, start,
                    duration, 20, correlation, place);
  }
  void gpu(const std::string& name, int count = 1) {
    for (int i = 0; i < count; ++i) run(fmt::format("INSERT INTO TARGET_INFO_GPU VALUES ({}, '{}', 108)", i, name));
  }
  const std::string& path() const { return path_; }

 private:
  struct Field {
    int type;
    const char* name;
    int offset;
  };
  /// The clock begins 1 ms before what a test calls 0.
  static std::int64_t ns(double us) {
    return static_cast<std::int64_t>(us * 1000 + (us < -1000 ? -0.5 : 0.5)) + 1'000'000;
  }

  void fields(int schema, const std::vector<Field>& all) {
    int index = 0;
    for (const Field& field : all) {
      run(fmt::format("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, {}, {}, NULL, {}, '{}', NULL, NULL, {})",
                      schema, index, field.type, field.name, index == 0 ? "NULL" : fmt::format("{}", field.offset)));
      ++index;
    }
  }
  int string_id(const std::string& text) {
    const auto [known, is_new] = strings_.try_emplace(text, static_cast<int>(strings_.size()) + 1);
    if (is_new) run(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", known->second, text));
    return known->second;
  }
  static std::string blob(int schema, const std::vector<std::uint64_t>& payload) {
    std::string text = "x'";
    const auto add = [&](std::uint64_t number) {
      for (int i = 0; i < 8; ++i) text += fmt::format("{:02x}", number >> (8 * i) & 255);
    };
    for (const std::uint64_t number : {std::uint64_t{1}, static_cast<std::uint64_t>(schema),
                                       std::uint64_t{8} * payload.size(), 32 + std::uint64_t{8} * payload.size()})
      add(number);
    for (const std::uint64_t number : payload) add(number);
    return text + "'";
  }

  std::string path_;
  sqlite3* database_ = nullptr;
  std::map<std::string, int> strings_;
};

inline experiments::programs::Imported import_exports(const std::vector<std::string>& paths,
                                                      const experiments::profiler::ReadOptions& options = {}) {
  return experiments::nsys::read_nsys(paths, options);
}

}  // namespace manyworlds::tests
