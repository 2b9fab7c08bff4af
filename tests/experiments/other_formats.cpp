// Files of other formats are refused by their names, with what would be read.
#include "experiments/traces/other_formats.hpp"

#include "experiments/traces/read_any.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace std::string_literals;

TEST_CASE("files of other formats are known by their first bytes or their names") {
  struct Case {
    std::string name, head, said;
  };
  const std::vector<Case> cases{
      {"a.json.gz", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"},
      {"a.zip", "PK\x03\x04rest", "archive of zip"},
      {"a", std::string(257, 'x') + "ustar", "archive of tar"},
      {"a.xz",
       "\xfd"
       "7zXZ\0rest"s,
       "compressed by xz"},
      {"a.bz2", "BZh9", "compressed by bzip2"},
      {"a.zst", "\x28\xb5\x2f\xfd", "compressed by zstd"},
      {"a.json", "\xff\xfe{\0"s, "UTF-16"},
      {"report.nsys-rep", "\0\0"s, "nsys export --type sqlite"},
      {"report.ncu-rep", "", "Nsight Compute"},
      {"host.xplane.pb", "", "XPlane"},
      {"b.pb", "\x0a\xa1\xf0\x08\x12\x0e/host:metadata", "XPlane"},
      {"trace.json.gz",
       R"({"displayTimeUnit":"ns","traceEvents":[{"args":{"name":"/device:GPU:0"},"name":"process_name","ph":"M"}]})",
       "trace of JAX, XLA or TensorFlow"},
      {"trace_view.json", R"([{"name": "process_name", "ph": "M", "args": {"name": "Ascend Hardware"}}])", "Ascend"},
      {"nccl.json", "[\n{\"name\": \"AllReduce\", \"cat\": \"COLL_API\", \"ph\": \"b\"},\n",
       "example of a profiler plugin"},
      {"nccl.json", "[\n{\"name\": \"Group\", \"cat\": \"GROUP\", \"ph\": \"b\", \"args\": {\"groupId\": 0}},\n",
       "example of a profiler plugin"},
      {"et.json", R"({"schema": "1.1.0-chakra.0.0.4", "pid": 1, "start_ts": 5, "nodes": [)", "--host-traces"},
      {"out.json", R"({"rocprofiler-sdk-tool":[{}]})", "rocprofv3"},
      {"snapshot.pickle", "\x80\x02}X\x0d\0\0\0device_traces"s, "snapshot of PyTorch's memory"},
      {"a.pftrace", "", "Perfetto"}};
  for (const Case& one : cases) {
    INFO(one.name << ": " << traces::other_format(one.name, one.head));
    CHECK(traces::other_format(one.name, one.head).find(one.said) != std::string::npos);
  }
  for (const char* read : {R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"kernel","name":"a /device: b"}]})",
                           R"({"version":"2.10","pg_config":{},"entries":[]})", "{\"header\": {}, \"coll_perf\": {}}",
                           "SQLite format 3", ""})
    CHECK(traces::other_format("a.json", read).empty());
}

TEST_CASE("a file that is not read says what it is, or why it cannot be") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& name, std::string_view bytes) {
    folder.put(name, bytes);
    return error_of([&] { traces::read_any({(folder / name).string()}, {}); });
  };
  CHECK(said("empty.json", "").ends_with("empty.json: is empty"));
  CHECK(said("a.zip", "PK\x03\x04").ends_with("a.zip: is an archive of zip: unpack it, and give the files in it"));
  CHECK(said("torn.json.gz", "\x1f\x8b\x08and nothing").find("compressed data are damaged") != std::string::npos);
  CHECK(said("own.json", "{}").find("is none of a program file, records") != std::string::npos);
  folder.put("p.jsonl", "{\"manyworlds_program\":1}\n");
  folder.put("rank-0.json", R"({"schemaVersion":1,"traceEvents":[]})");
  const std::string program = (folder / "p.jsonl").string(), trace = (folder / "rank-0.json").string();
  CHECK(error_of([&] {
          traces::read_any({trace, program}, {});
        }) == program + ": is a program file, and " + trace +
                  " is traces of PyTorch's profiler: files of one format are read together");
  CHECK(error_of([&] {
          traces::read_any({(folder / "none.json").string()}, {});
        }).ends_with("none.json: cannot be read: No such file or directory"));
}
