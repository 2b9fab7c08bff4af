// Messages and frames as bytes, and the small parts around them: quotas, rank counts, progress.
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/base/error.hpp"
#include "farm/protocol/frame.hpp"
#include "farm/protocol/message.hpp"
#include "farm/status/progress.hpp"
#include "farm/system/host_resources.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

namespace {

Message example() {
  Message message{.kind = MessageKind::work, .flag = true, .number = 0xfedcba9876543210ULL};
  message.tasks = {0, 1, 4'000'000'000U};
  message.assignments = {{5, {1, 2, 3}, "five"}, {6, {}, ""}};
  message.results = {{1, {Status::ok, std::string("\0bytes\xff", 7), 123}}, {2, {Status::crash, "", -1, 7}}};
  message.ranks = {7, 0};
  message.help = {1, 2'000'000'000'000, 3};
  message.text = "frozen";
  return message;
}

}  // namespace

TEST_CASE("a message survives its encoding") {
  const Message sent = example(), got = decode_message(encode(sent));
  CHECK(got.kind == sent.kind);
  CHECK(got.flag == sent.flag);
  CHECK(got.number == sent.number);
  CHECK(got.tasks == sent.tasks);
  REQUIRE(got.assignments.size() == 2);
  CHECK(got.assignments[0].inputs == sent.assignments[0].inputs);
  CHECK(got.assignments[0].spec == "five");
  REQUIRE(got.results.size() == 2);
  CHECK(got.results[0].second.bytes == sent.results[0].second.bytes);
  CHECK(got.results[1].second.status == Status::crash);
  CHECK(got.results[1].second.max_failures == 7);
  CHECK(got.ranks == sent.ranks);
  CHECK(got.help == sent.help);
  CHECK(got.text == "frozen");
}

TEST_CASE("a message cut anywhere is an internal error, and damage never reads beyond it") {
  const std::string whole = encode(example());
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(decode_message(whole.substr(0, size)), core::InternalError);
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      decode_message(damaged);
    } catch (const core::InternalError&) {
    }
  }
}

TEST_CASE("frames larger than a socket's buffer arrive whole, and half a frame is no frame") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const std::string big(5'000'000, 'x');
  std::thread writer([&] {
    CHECK(write_frame(ends[0], ""));
    CHECK(write_frame(ends[0], big));
    const std::string half = frame_of("never finished").substr(0, 12);
    CHECK(::write(ends[0], half.data(), half.size()) == 12);
    ::close(ends[0]);
  });
  CHECK(read_frame(ends[1]) == "");
  CHECK(read_frame(ends[1]) == big);
  CHECK_FALSE(read_frame(ends[1]));
  writer.join();
  ::close(ends[1]);
}

TEST_CASE("a CPU quota is rounded up to whole CPUs") {
  CHECK(cpus_of_quota("max 100000") == std::nullopt);
  CHECK(cpus_of_quota("") == std::nullopt);
  CHECK(cpus_of_quota("-1 100000") == std::nullopt);
  CHECK(cpus_of_quota("150000 100000") == 2);
  CHECK(cpus_of_quota("400000 100000") == 4);
  CHECK(cpus_of_quota("1000 100000") == 1);
}

TEST_CASE("a rank has as many threads as Slurm gives CPUs to a task and the machine has, and one elsewhere") {
  const auto with = [](const char* cpus_per_task) {
    ::setenv("SLURM_CPUS_PER_TASK", cpus_per_task, 1);
    return threads_per_rank();
  };
  ::unsetenv("SLURM_JOB_ID");
  CHECK(with("2") == 1);
  ::setenv("SLURM_JOB_ID", "17", 1);
  CHECK(with("1") == 1);
  CHECK(with("2") == std::min(2, available_cpus()));
  CHECK(with("100000") == available_cpus());
  CHECK(with("many") == 1);
  ::unsetenv("SLURM_CPUS_PER_TASK");
  CHECK(threads_per_rank() == 1);
  ::unsetenv("SLURM_JOB_ID");
}

TEST_CASE("frames are read with and without waiting, and one that is half there later") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  FrameReader reader(ends[1]);
  CHECK_FALSE(reader.poll());
  const std::string second = frame_of("second");
  CHECK(write_frame(ends[0], "first"));
  CHECK(::write(ends[0], second.data(), 10) == 10);
  CHECK(reader.poll() == "first");
  CHECK_FALSE(reader.poll());
  CHECK(::write(ends[0], second.data() + 10, second.size() - 10) == static_cast<ssize_t>(second.size() - 10));
  CHECK(write_frame(ends[0], "third"));
  CHECK(reader.read() == "second");
  CHECK(reader.poll() == "third");
  ::close(ends[0]);
  CHECK_FALSE(reader.poll());
  CHECK_FALSE(reader.read());
  ::close(ends[1]);
}

TEST_CASE("a number of ranks below one is bad input") {
  CHECK_THROWS_AS(rank_count(0), core::InputError);
  CHECK_THROWS_AS(rank_count(-3), core::InputError);
  CHECK(rank_count(3).ranks == 3);
  CHECK(rank_count(16 * available_cpus()).ranks == 16 * available_cpus());
  CHECK_THROWS_AS(rank_count(16 * available_cpus() + 1), core::InputError);
}

TEST_CASE("progress counts per kind and expects the time that cost predicts of each kind") {
  Progress progress({"collectives", "steps", "steps", "steps"}, {30, 10, 20, 5}, 2);
  progress.settled(0, {Status::ok, "", 500'000}, false);
  CHECK(progress.status("running", 3)["time_left_s"].is_null());  // what a step takes is not known yet
  progress.settled(1, {Status::ok, "", 2'500'000}, false);
  const auto status = progress.status("running", 1.5);
  CHECK(status["done"] == 2);
  CHECK(status["total"] == 4);
  CHECK(status["kinds"][0]["done"] == 1);
  CHECK(status["kinds"][1]["total"] == 3);
  // Steps of a cost of 10 took 2.5 s, so that 25 take 6.25 s; 3 s of work took 1.5 s.
  CHECK(status["time_left_s"] == Approx(3.125));
  CHECK(progress_line(status) == "collectives 1/1, steps 1/3, 1.3/s, 3s left");
  CHECK_THAT(progress_line(progress.status("draining", 1.5)), Catch::EndsWith(", stopping (what runs is finished)"));
  CHECK(duration_text(59.6) == "1m00s");
  CHECK(duration_text(3'725) == "1h02m");
}
