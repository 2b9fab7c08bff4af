// A run directory is begun once, gone on with by the same sweep and build, and owned by one process at a time.
#include "io/log/run_directory.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "core/base/error.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

const RunDirectory::Options kThisBuild{"build-1", "", false};

}  // namespace

TEST_CASE("a run directory is created, and the same sweep goes on with it") {
  const TemporaryFolder scratch;
  const auto path = scratch / "deep" / "run";
  {
    const RunDirectory run = RunDirectory::begin(path, "{sweep}", kThisBuild);
    CHECK_FALSE(run.continued());
    CHECK(std::filesystem::is_directory(run.journal()));
  }
  CHECK(bytes_of(path / "sweep.resolved.json") == "{sweep}");
  CHECK(RunDirectory::begin(path, "{sweep}", kThisBuild).continued());
  const RunDirectory resumed = RunDirectory::resume(path, kThisBuild);
  CHECK((resumed.continued() && resumed.serialized_sweep() == "{sweep}"));
  CHECK(read_serialized_sweep(path) == "{sweep}");
}

TEST_CASE("another sweep is refused, and the directory stays as it was") {
  const TemporaryFolder scratch;
  RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild);
  CHECK_THROWS_WITH(RunDirectory::begin(scratch / "run", "{other}", kThisBuild),
                    Catch::Contains((scratch / "run").string()) && Catch::Contains("another sweep"));
  CHECK_THROWS_AS(RunDirectory::begin(scratch / "run", "{sweep} ", kThisBuild), core::InputError);
  CHECK(read_serialized_sweep(scratch / "run") == "{sweep}");
}

TEST_CASE("another build is refused unless it is told to compute again") {
  const TemporaryFolder scratch;
  {
    RunDirectory run = RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild);
    run.write_complete("{}");
    put_bytes(run.results(), "of build 1");
  }
  CHECK_THROWS_WITH(RunDirectory::begin(scratch / "run", "{sweep}", {"build-2", "", false}),
                    Catch::Contains("build-1") && Catch::Contains("build-2") && Catch::Contains("--rebuild"));
  CHECK_THROWS_AS(RunDirectory::resume(scratch / "run", {"build-2", "", false}), core::InputError);
  CHECK(read_complete(scratch / "run") == "{}");
  RunDirectory::resume(scratch / "run", {"build-2", "", true});
  CHECK_FALSE(read_complete(scratch / "run"));
  CHECK_FALSE(std::filesystem::exists(scratch / "run" / "results.h5"));
  RunDirectory::begin(scratch / "run", "{sweep}", {"build-2", "", false});
  CHECK_THROWS_AS(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild), core::InputError);
}

TEST_CASE("a second process is told who has the directory") {
  const TemporaryFolder scratch;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunDirectory run = RunDirectory::begin(scratch / "run", "{sweep}", {"build-1", "4711", false});
    if (::write(ends[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char begun = 0;
  REQUIRE(::read(ends[0], &begun, 1) == 1);
  CHECK_THROWS_WITH(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild),
                    Catch::Contains(std::to_string(child)) && Catch::Contains(host_name()) && Catch::Contains("4711"));
  CHECK(read_serialized_sweep(scratch / "run") == "{sweep}");  // looking needs no lock
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild).continued());  // the dead hold nothing
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a lock whose contents mean nothing still locks") {
  const TemporaryFolder scratch;
  const RunDirectory run = RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild);
  for (const char* contents : {"", R"({"host": 3})"}) {
    put_bytes(scratch / "run" / "lock", contents);
    CHECK_THROWS_WITH(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild), Catch::Contains("another process"));
  }
}

TEST_CASE("an incarnation that died before the sweep was written leaves a directory that can be begun") {
  const TemporaryFolder scratch;
  std::filesystem::create_directories(scratch / "run" / "journal");
  put_bytes(scratch / "run" / "lock", "");
  put_bytes(scratch / "run" / "build.json", "{\"finger");
  put_bytes(scratch / "run" / "sweep.resolved.json.123.tmp", "{sw");
  CHECK_FALSE(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild).continued());
  CHECK_FALSE(std::filesystem::exists(scratch / "run" / "sweep.resolved.json.123.tmp"));
  CHECK(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild).continued());
}

TEST_CASE("who only asks whether a run is in use does not keep others from beginning it") {
  const TemporaryFolder scratch;
  RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild);
  const std::string gone = R"({"host": ")" + host_name() + R"(", "pid": "99999999", "job": ""})";
  put_bytes(scratch / "run" / "lock", gone);
  auto asks = std::make_optional<File>(scratch / "run" / "lock", O_RDONLY);
  REQUIRE(asks->try_lock());
  std::jthread answered([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // far longer than for a holder that lives
    asks.reset();
  });
  CHECK(RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild).continued());
}

TEST_CASE("what a run leaves is for its owner, or for whom the folder that was there is for") {
  const TemporaryFolder scratch;
  const mode_t before = ::umask(0);
  const auto mode = [&](const std::filesystem::path& path) {
    struct stat status {};
    REQUIRE(::stat((scratch / path).c_str(), &status) == 0);
    return status.st_mode & 07777;
  };
  const auto modes = [&](const std::string& run) {
    RunDirectory directory = RunDirectory::begin(scratch / run, "{sweep}", kThisBuild);
    directory.write_status("{}");
    const std::vector<mode_t> files{mode(run + "/sweep.resolved.json"), mode(run + "/status.json"),
                                    mode(run + "/lock")};
    CHECK(files == std::vector<mode_t>(3, files[0]));
    return std::vector<mode_t>{mode(run), mode(run + "/journal"), files[0]};
  };
  CHECK(modes("new/run") == std::vector<mode_t>{0700, 0700, 0600});
  CHECK(mode("new") == 0755);
  // The rights of the folder, and what its files have of them: others never write, in a sticky folder nobody else does.
  const std::vector<std::vector<mode_t>> result{{0750, 0750, 0640}, {0755, 0755, 0644},   {0770, 0770, 0660},
                                                {0777, 0777, 0664}, {01777, 01777, 0644}, {0711, 0711, 0600}};
  for (const auto& expected : result) {
    const std::string run = "made" + std::to_string(expected[0]);
    std::filesystem::create_directory(scratch / run);
    REQUIRE(::chmod((scratch / run).c_str(), expected[0]) == 0);
    CHECK(modes(run) == expected);
  }
  ::umask(before);
}

TEST_CASE("what is no run directory is bad input that names the path") {
  const TemporaryFolder scratch;
  put_bytes(scratch / "letter.txt", "dear");
  CHECK_THROWS_WITH(RunDirectory::begin(scratch.path, "{sweep}", kThisBuild), Catch::Contains("not empty"));
  CHECK_FALSE(std::filesystem::exists(scratch / "lock"));
  for (const auto& path :
       {scratch / "letter.txt", scratch / "letter.txt" / "run", std::filesystem::path("/proc/run")}) {
    INFO(path);
    CHECK_THROWS_AS(RunDirectory::begin(path, "{sweep}", kThisBuild), core::InputError);
    CHECK_THROWS_WITH(RunDirectory::begin(path, "{sweep}", kThisBuild), Catch::Contains(path.string()));
    CHECK_THROWS_WITH(RunDirectory::resume(path, kThisBuild), Catch::Contains("not a run directory"));
    CHECK_THROWS_AS(read_status(path), core::InputError);
    CHECK_THROWS_AS(read_complete(path), core::InputError);
  }
}

TEST_CASE("a full disk while a run is begun is an input/output error, and the run can be begun later") {
  const TemporaryFolder scratch;
  {
    const FullDisk full(200);
    CHECK_THROWS_AS(RunDirectory::begin(scratch / "run", std::string(1000, 's'), kThisBuild), core::IoError);
  }
  CHECK_FALSE(RunDirectory::begin(scratch / "run", std::string(1000, 's'), kThisBuild).continued());
}

TEST_CASE("status and completion appear whole and can be taken back") {
  const TemporaryFolder scratch;
  RunDirectory run = RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild);
  CHECK_FALSE(read_status(run.path()));
  run.write_status("{1}");
  run.write_status("{2}");
  CHECK(read_status(run.path()) == "{2}");
  run.write_complete("{done}");
  CHECK(read_complete(run.path()) == "{done}");
  run.clear_complete();
  run.clear_complete();
  CHECK_FALSE(read_complete(run.path()));
}

TEST_CASE("RUN on a command line is a results file or a directory that has one") {
  const TemporaryFolder scratch;
  RunDirectory::begin(scratch / "run", "{sweep}", kThisBuild);
  CHECK_THROWS_WITH(results_path(scratch / "run"), Catch::Contains("results.h5"));
  put_bytes(scratch / "run" / "results.h5", "x");
  CHECK(results_path(scratch / "run") == scratch / "run" / "results.h5");
  CHECK(results_path(scratch / "run" / "results.h5") == scratch / "run" / "results.h5");
  CHECK_THROWS_WITH(results_path(scratch / "absent"), Catch::Contains("absent"));
}

TEST_CASE("a reader of a file that is written aside sees the old or the new, never a part") {
  const TemporaryFolder scratch;
  const std::string old_bytes(200'000, 'o'), new_bytes(300'000, 'n');
  write_atomically(scratch / "file", old_bytes);
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) write_atomically(scratch / "file", i % 2 ? old_bytes : new_bytes);
  });
  bool whole = true;
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(scratch / "file");
    whole = whole && (seen == old_bytes || seen == new_bytes);
  }
  CHECK(whole);
}

TEST_CASE("a file that cannot be written aside keeps its old bytes and leaves no temporary") {
  const TemporaryFolder scratch;
  write_atomically(scratch / "file", "old");
  {
    const FullDisk full(100);
    CHECK_THROWS_WITH(write_atomically(scratch / "file", std::string(1000, 'n')),
                      Catch::Contains((scratch / "file").string() + ":"));
  }
  CHECK(read_file(scratch / "file") == "old");
  CHECK(list_directory(scratch.path) == std::vector<std::string>{"file"});
  CHECK_THROWS_AS(write_atomically("/proc/nowhere/file", "x"), core::IoError);
  std::filesystem::create_directory(scratch / "directory");
  CHECK_THROWS_AS(write_atomically(scratch / "directory", "x"), core::IoError);
  CHECK(list_directory(scratch.path).size() == 2);
}

TEST_CASE("a file keeps its mode and a link its place when what it holds is replaced") {
  const TemporaryFolder scratch;
  put_bytes(scratch / "file", "old");
  REQUIRE(::chmod((scratch / "file").c_str(), 0640) == 0);
  std::filesystem::create_directory(scratch / "folder");
  std::filesystem::create_symlink("../file", scratch / "folder" / "near");
  std::filesystem::create_symlink(scratch / "folder" / "near", scratch / "far");
  std::filesystem::create_symlink("new", scratch / "dangling");
  std::filesystem::create_symlink("loop", scratch / "loop");
  write_atomically(scratch / "far", "new");
  CHECK(bytes_of(scratch / "file") == "new");
  CHECK(std::filesystem::is_symlink(scratch / "far"));
  CHECK(std::filesystem::is_symlink(scratch / "folder" / "near"));
  CHECK((std::filesystem::status(scratch / "file").permissions() & std::filesystem::perms::all) ==
        std::filesystem::perms(0640));
  write_atomically(scratch / "dangling", "made");
  CHECK(bytes_of(scratch / "new") == "made");
  CHECK_THROWS_WITH(write_atomically(scratch / "loop", "x"), Catch::Contains("symbolic links"));
  CHECK(list_directory(scratch.path) == std::vector<std::string>{"dangling", "far", "file", "folder", "loop", "new"});
}

TEST_CASE("a FIFO is written to and stays, and is not read where a file is wanted") {
  const TemporaryFolder scratch;
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_file(scratch / "fifo"), Catch::Contains("no regular file"));
  std::string heard;
  std::jthread listens([&] {
    std::ifstream fifo(scratch / "fifo");
    heard.assign(std::istreambuf_iterator<char>(fifo), {});
  });
  write_atomically(scratch / "fifo", "said");
  listens.join();
  CHECK(heard == "said");
  CHECK(std::filesystem::is_fifo(scratch / "fifo"));
  CHECK(list_directory(scratch.path) == std::vector<std::string>{"fifo"});
}

TEST_CASE("a file that is larger than it may be is refused before it is read") {
  const TemporaryFolder scratch;
  put_bytes(scratch / "file", "12345");
  CHECK(read_file(scratch / "file", 5) == "12345");
  CHECK_THROWS_WITH(read_file(scratch / "file", 4), Catch::Contains("of 5 bytes, is larger than the 4"));
  std::filesystem::resize_file(scratch / "file", std::uintmax_t{1} << 40);  // sparse
  CHECK_THROWS_WITH(read_file(scratch / "file"), Catch::Contains("is larger than the"));
}

TEST_CASE("system calls that fail name the file and the reason") {
  CHECK_THROWS_WITH(File("/dev/full", O_WRONLY).write_at(0, "x"),
                    Catch::Contains("/dev/full") && Catch::Contains("No space left"));
  CHECK_THROWS_WITH(read_file("/nowhere/file"), Catch::Contains("/nowhere/file"));
  CHECK_THROWS_AS(read_file("/proc"), core::IoError);
  CHECK_THROWS_AS(list_directory("/nowhere"), core::IoError);
  CHECK_THROWS_AS(sync_directory("/nowhere"), core::IoError);
}
