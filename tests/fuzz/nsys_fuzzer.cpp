// Any bytes as an export of Nsight Systems: as the file itself, or, if they begin with a T, as numbers in the tables of
// one that SQLite writes. Either is refused on one line, or is programs.
#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>

#include "experiments/nsys/read_nsys.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

/// Takes numbers of an input until it ends.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  bool are_there() const { return !bytes_.empty(); }
  std::int64_t operator()() {
    if (bytes_.empty()) return 0;
    const auto first = static_cast<signed char>(bytes_.front());
    bytes_.remove_prefix(1);
    return first == -128 ? INT64_MAX - std::abs((*this)()) : first;  // most are small
  }

 private:
  std::string_view bytes_;
};

constexpr const char* kTables =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (0,'gemm'),(1,'cudaLaunchKernel_v7000'),(2,'cudaStreamWaitEvent'),"
    "(3,'cudaEventRecord'),(4,'cudaStreamSynchronize'),(5,'cudaDeviceSynchronize'),(6,'cudaEventSynchronize'),"
    "(7,'cudaMemcpyAsync'),(8,'cudaGraphLaunch'),(9,'ncclDevKernel_AllReduce'),(10,'ncclGroupStart'),"
    "(11,'ncclGroupEnd'),(12,'ncclAllReduce'),(13,'ncclAllGather'),(14,'ncclSend'),(15,'ncclRecv'),"
    "(16,'ncclCommInitRank'),(17,'step 3'),(18,'Optimizer.step'),(19,'ncclBroadcast');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start,end,globalPid,deviceId,streamId,correlationId,demangledName,"
    "graphNodeId);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start,end,globalTid,correlationId,nameId);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start,end,globalPid,deviceId,streamId,correlationId,copyKind,bytes);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (correlationId,globalPid,deviceId,contextId,streamId,eventId,"
    "eventSyncId,syncType);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (correlationId,globalPid,deviceId,contextId,streamId,eventId,"
    "eventSyncId);"
    "CREATE TABLE NVTX_EVENTS (start,end,globalTid,textId,binaryData);"
    "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId,schemaId,idx,type,name,offset);"
    "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1,1,0,18,'NCCL communicator ID',NULL),(1,1,1,5,'No. of ranks',8),"
    "(1,1,2,5,'Rank',12),(1,1,3,5,'CUDA device',16),(1,2,0,18,'NCCL communicator ID',NULL),"
    "(1,2,1,22,'Message size [bytes]',8),(1,2,2,5,'Peer rank',16);";

struct Table {
  const char* name;
  int columns;
  int process;  // the column with a process or thread
};
constexpr Table kRows[] = {{"CUPTI_ACTIVITY_KIND_KERNEL", 8, 2},     {"CUPTI_ACTIVITY_KIND_RUNTIME", 5, 2},
                           {"CUPTI_ACTIVITY_KIND_MEMCPY", 8, 2},     {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 8, 1},
                           {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", 7, 1}, {"NVTX_EVENTS", 5, 2}};

std::string row(Numbers& numbers) {
  const Table& table = kRows[static_cast<std::uint64_t>(numbers()) % std::size(kRows)];
  std::string values;
  for (int column = 0; column < table.columns; ++column) {
    const std::int64_t number = numbers();
    std::string value = fmt::format("{}", number);
    if (column == table.process) value = fmt::format("{}", (number & 1) << 24);
    if (column == 4 && std::string_view(table.name) == "NVTX_EVENTS") {
      const std::int64_t schema = 1 + (number & 1), communicator = numbers(), size = numbers(), other = numbers();
      value = "x'";
      for (const std::int64_t word :
           {std::int64_t{1}, schema, std::int64_t{24}, std::int64_t{56}, communicator, size, other})
        for (int byte = 0; byte < 8; ++byte)
          value += fmt::format("{:02x}", static_cast<std::uint64_t>(word) >> (8 * byte) & 255);
      value += "'";
    }
    values += (column > 0 ? "," : "") + value;
  }
  return fmt::format("INSERT INTO {} VALUES ({});", table.name, values);
}

void write_tables(const std::string& path, std::string_view bytes) {
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  std::string sql = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;";
  sql += kTables;
  Numbers numbers(bytes);
  while (numbers.are_there()) sql += row(numbers);
  fuzz::require(sqlite3_exec(database, (sql + "COMMIT;").c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  const std::string path = (folder / "export.sqlite").string();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::filesystem::remove(path);
  if (bytes.starts_with('T'))
    write_tables(path, bytes.substr(1));
  else
    folder.put("export.sqlite", bytes);
  for (const auto how : {profiler::Collectives::simulated, profiler::Collectives::without_waiting}) {
    profiler::ReadOptions options;
    options.collectives = how;
    try {
      fuzz::require_measured_programs(nsys::read_nsys({path}, options).programs);
    } catch (const core::InputError& error) {
      fuzz::require_refusal(error, path);
    }
  }
  return 0;
}
