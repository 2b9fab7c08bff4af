// Records of captured programs, written down call by call, and what is read of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/captured/read_captured.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/imported_programs.hpp"

namespace manyworlds::tests {

/// The text of a record; every call returns it. Streams 2 and on are created with create(); calls are of the thread
/// that was set last.
class RecordText {
 public:
  explicit RecordText(int rank = 0, int world = 1) {
    text_ = fmt::format(R"({{"call":"capture","version":1,"rank":{},"world":{},"gpu":"h100_sxm","thread":0,"at_ns":1}})"
                        "\n",
                        rank, world);
  }
  RecordText& call(const std::string& name, const std::string& members = "") {
    text_ += fmt::format(R"({{"call":"{}",{}{}"thread":{},"at_ns":{}}})"
                         "\n",
                         name, members, members.empty() ? "" : ",", thread_, ++calls_ * 10);
    return *this;
  }
  RecordText& thread(int number) {
    thread_ = number;
    return *this;
  }
  RecordText& create(bool is_blocking = true) {
    return call("cudaStreamCreateWithFlags",
                fmt::format(R"("stream":{},"flags":{},"priority":0,"device":0)", 2 + streams_++, is_blocking ? 0 : 1));
  }
  RecordText& launch(const std::string& kernel, int stream, int grid = 1, const std::string& arguments = "[]") {
    return call(
        "cudaLaunchKernel",
        fmt::format(R"("kernel":"{}","grid":[{},1,1],"block":[32,1,1],"shared_bytes":0,"stream":{},"arguments":{})",
                    kernel, grid, stream, arguments));
  }
  RecordText& record(int event, int stream) {
    return call("cudaEventRecord", fmt::format(R"("event":{},"stream":{})", event, stream));
  }
  RecordText& wait(int stream, int event) {
    return call("cudaStreamWaitEvent", fmt::format(R"("event":{},"stream":{})", event, stream));
  }
  RecordText& copy(const std::string& name, const std::string& direction, int stream,
                   const std::string& to = "\"host\"", int bytes = 64) {
    return call(name, fmt::format(R"("to":{},"from":[1,0],"bytes":{},"direction":"{}","stream":{})", to, bytes,
                                  direction, stream));
  }
  RecordText& open(const std::string& key, int size, int in_rank) {
    return call("ncclCommInitRank", fmt::format(R"("key":"{}","size":{},"in_rank":{},"communicator":{},"device":0)",
                                                key, size, in_rank, communicators_++));
  }
  /// `more` is reduction, root, peer or group.
  RecordText& communicate(const std::string& name, int communicator, int count, int stream,
                          const std::string& more = R"("reduction":"sum")") {
    return call(name, fmt::format(R"("communicator":{},"count":{},"dtype":"fp32",{}{}"stream":{})", communicator, count,
                                  more, more.empty() ? "" : ",", stream));
  }
  std::string text() const {
    return text_ + R"({"call":"end","thread":0,"at_ns":9})"
                   "\n";
  }

 private:
  std::string text_;
  int thread_ = 0, streams_ = 0, communicators_ = 0, calls_ = 0;
};

inline experiments::captured::ReadOptions all_of_it() {
  experiments::captured::ReadOptions options;
  options.steps.by = experiments::captured::StepChoice::By::all;
  return options;
}

/// Reads records as files rank0.jsonl and on, of a folder `job`.
inline experiments::programs::Imported import_records(const std::vector<RecordText>& texts,
                                                      const experiments::captured::ReadOptions& options = all_of_it(),
                                                      const std::string& table = "kernels: []\n",
                                                      const std::string& groups = "") {
  experiments::captured::Words words;
  std::vector<experiments::captured::RankRecord> records;
  for (const RecordText& one : texts)
    records.push_back(
        experiments::captured::parse_record(one.text(), fmt::format("rank{}.jsonl", records.size()), words));
  return experiments::captured::import_records(
      std::move(records), words, experiments::captured::KernelTable(table, "kernels.yaml"), options, groups, "job");
}

/// The operations of a program, as "name on stream, after 0 1".
inline std::vector<std::string> operations(const experiments::programs::Imported& imported, std::size_t program = 0) {
  const experiments::programs::StreamPrograms& all = imported.programs;
  std::vector<std::string> lines;
  for (const experiments::programs::StreamOp& op : all.programs.at(program).ops) {
    const std::string& stream = all.programs[program].streams[op.stream].name;
    lines.push_back(fmt::format("{} on {}", all.names[op.name], stream));
    if (!op.after.empty()) lines.back() += fmt::format(", after {}", fmt::join(op.after, " "));
  }
  return lines;
}

/// What the reader says of records that it refuses.
inline std::string error(const std::vector<RecordText>& texts,
                         const experiments::captured::ReadOptions& options = all_of_it(),
                         const std::string& table = "kernels: []\n", const std::string& groups = "") {
  return error_of([&] { import_records(texts, options, table, groups); });
}

}  // namespace manyworlds::tests
