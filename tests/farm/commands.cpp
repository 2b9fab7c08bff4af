// The command line: verbs, options, and the exit codes that scripts rely on.
#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "tests/farm/said.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

cxxopts::ParseResult parse_sweep(const std::vector<std::string>& words) {
  cxxopts::Options options("manyworlds sweep");
  commands::add_spec_options(options);
  commands::add_run_options(options);
  options.parse_positional({"spec"});
  auto parsed = commands::parse(options, words);
  REQUIRE(parsed);
  return *parsed;
}

}  // namespace

TEST_CASE("every verb explains itself and refuses an unknown option with exit 2") {
  for (const auto& command : commands::registry()) {
    INFO(command.name);
    const Said help = say({command.name, "-h"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.output, Catch::Contains("manyworlds " + command.name));
    CHECK(say({command.name, "--no-such-option"}).exit_code == 2);
    CHECK_THAT(say({"--help"}).output, Catch::Contains(command.summary));
  }
}

TEST_CASE("an unknown verb, no verb and a run that is none are bad usage") {
  CHECK(say({}).exit_code == 2);
  CHECK(say({"statsu"}).exit_code == 2);
  CHECK(say({"status", "/nowhere"}).exit_code == 2);
  CHECK(say({"status"}).exit_code == 2);
  CHECK(say({"diff", "/nowhere", "/nowhere"}).exit_code == 2);
  CHECK(say({"list", "gpsu"}).exit_code == 2);
}

TEST_CASE("a mistyped option is answered with the nearest one") {
  CHECK_THROWS_WITH(parse_sweep({"a.yaml", "--no-sharin"}), Catch::Contains("--no-sharing"));
  CHECK_THROWS_AS(parse_sweep({"a.yaml", "-j", "many"}), core::InputError);
  CHECK_THROWS_AS(parse_sweep({"a.yaml", "b.yaml"}), core::InputError);
}

TEST_CASE("a value that is none is answered with its option and what that takes") {
  const auto said = [](std::vector<std::string> words) {
    cxxopts::Options options("manyworlds");
    options.add_options()("files", "", cxxopts::value<std::vector<std::string>>())(
        "step", "", cxxopts::value<std::int64_t>(), "N")("n,nodes", "", cxxopts::value<int>(), "N")(
        "ranks", "", cxxopts::value<std::uint32_t>(), "N")("seed", "", cxxopts::value<std::uint64_t>(), "N")(
        "us", "", cxxopts::value<double>(), "US")("json", "");
    options.parse_positional({"files"});
    try {
      commands::parse(options, words);
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said({"five", "--step", "five", "x"}) == "--step: must be a whole number below 2^63, not 'five'");
  CHECK(said({"--us", "5", "--step=1.5", "--ranks", "x"}) == "--step: must be a whole number below 2^63, not '1.5'");
  CHECK(said({"--ranks", "-1"}) == "--ranks: must be a whole number from 0 on and below 2^32, not '-1'");
  CHECK(said({"--ranks", "4294967296"}) ==
        "--ranks: must be a whole number from 0 on and below 2^32, not '4294967296'");
  CHECK(said({"--seed", "x"}) == "--seed: must be a whole number from 0 on and below 2^64, not 'x'");
  CHECK(said({"-n", "x"}) == "-n: must be a whole number below 2^31, not 'x'");
  CHECK(said({"-nx"}) == "-n: must be a whole number below 2^31, not 'x'");
  CHECK(said({"--us", "long", "--step", "x"}) == "--us: must be a number, not 'long'");
  CHECK(said({"--step", "-nx"}) == "--step: must be a whole number below 2^63, not '-nx'");
  CHECK(said({"--json=maybe"}) == "--json: must be given without a value, not 'maybe'");
  CHECK(said({"a", "--step", "-5", "--ranks", "4294967295", "--us", "0.5", "--json"}).empty());
}

TEST_CASE("the option --set keeps commas, may be repeated, and wants an equals sign") {
  const auto words =
      commands::read_spec_options(parse_sweep({"a.yaml", "--set", "axes.strategy.tp=[1, 2]", "--set", "name=x"}));
  CHECK(words.set == std::vector<std::string>{"axes.strategy.tp=[1, 2]", "name=x"});
  CHECK_THROWS_WITH(commands::read_spec_options(parse_sweep({"a.yaml", "--set", "tp"})), Catch::Contains("KEY=VALUE"));
  CHECK_THROWS_AS(commands::read_spec_options(parse_sweep({})), core::InputError);
}

TEST_CASE("ranks go on with what their supervisor began, by the same options, and no sharing means no store") {
  const RunOptions options = commands::read_run_options(
      parse_sweep({"a.yaml", "-j", "3", "--no-sharing", "--store", "/tmp/s", "--task-memory", "1GiB", "--task-time",
                   "2m", "--store-limit", "3MB", "--threads", "2", "--stop-after", "1h"}),
      "out");
  CHECK(options.ranks == 3);
  CHECK(options.store == "none");
  CHECK(rank_arguments(options) == std::vector<std::string>{"resume", "out", "--store", "none", "--store-limit",
                                                            "3000000", "--threads", "2", "--task-memory", "1073741824",
                                                            "--task-time", "120s", "--start-time", "60s",
                                                            "--stop-after", "3600s"});
}

TEST_CASE("limits of a task and of a run are told in sizes and durations") {
  using std::chrono::seconds;
  CHECK(commands::parse_duration("90s", "--task-time") == seconds(90));
  CHECK(commands::parse_duration("1h30m", "--task-time") == seconds(5'400));
  CHECK(commands::parse_duration("2d", "--task-time") == seconds(172'800));
  CHECK(commands::parse_duration("0", "--task-time") == seconds(0));
  for (const std::string wrong : {"", "5", "m", "-5s", "5x", "1h30", "99999999999999999999s", "999999999d", "1.5h"})
    CHECK_THROWS_WITH(commands::parse_duration(wrong, "--task-time"), Catch::Contains("1h30m"));
  CHECK(commands::parse_size("2GiB", "--task-memory") == std::int64_t{2} << 30);
  CHECK_THROWS_WITH(commands::parse_size("-1", "--task-memory"), Catch::Contains("--task-memory"));
  CHECK_THROWS_AS(commands::parse_size("0", "--bytes", 1), core::InputError);

  const RunOptions options =
      commands::read_run_options(parse_sweep({"a.yaml", "--task-memory", "1GiB", "--stop-after", "2m"}), "out");
  CHECK(options.task_memory_bytes == std::uint64_t{1} << 30);
  CHECK(options.task_time == seconds(6 * 3'600));
  CHECK(options.drain_after == seconds(120));
  CHECK(resume_line(options) == "manyworlds resume out");
}

TEST_CASE("the line that goes on is quoted for the shell, and no path in it is an option") {
  CHECK(resume_line("runs/my sweep", "none") == "manyworlds resume 'runs/my sweep' --store none");
  CHECK(resume_line("-rf", "-x; y") == "manyworlds resume ./-rf --store './-x; y'");
  CHECK(resume_line("a\nb") == "manyworlds resume $'a\\012b'");
}

TEST_CASE("list shows what is there, for people and for scripts") {
  const Said gpus = say({"list", "gpus"});
  CHECK(gpus.exit_code == 0);
  CHECK_THAT(gpus.output, Catch::Contains("h100_sxm"));
  CHECK_THAT(say({"list", "--json"}).output, Catch::Contains("\"topologies\""));
  CHECK_THAT(say({"schema"}).output, Catch::Contains("\"$schema\""));
}

TEST_CASE("stragglers tells the fastest and the slowest rank in words, and by how much the slow one is behind") {
  const TemporaryFolder folder;
  folder.put("one.yaml",
             "base:\n"
             "  model: {layers: 2, hidden: 1024, heads: 8, vocabulary: 4096, sequence: 512}\n"
             "  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 4, nic_gbps: 400}\n"
             "  strategy: {tp: 1, global_batch: 4}\n"
             "  faults: {slow_gpus: gpu3=0.5}\n");
  const Said said = say({"stragglers", (folder / "one.yaml").string(), "--noise", "0"});
  CHECK(said.exit_code == 0);
  CHECK_THAT(said.output, Catch::Matches("4 ranks, 10 steps measured with 0 % noise\n"
                                         "kernels of a step take from [0-9.]+ s \\([0-9.]+ TFLOP/s of the model\\) on "
                                         "rank [012] to [0-9.]+ s \\([0-9.]+ TFLOP/s of the model\\) on rank 3\n"
                                         "rank 3 \\(gpu3, node 0\\) is slow; beside the median of its peers:\n"
                                         "  backward +\\+[0-9.]+ %\n(.|\n)*"));
}
