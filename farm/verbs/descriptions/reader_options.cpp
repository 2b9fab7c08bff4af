#include "farm/verbs/descriptions/reader_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/traces/reader_options.hpp"
#include "farm/cli/parsing/option_values.hpp"

namespace manyworlds::farm::commands {
namespace {

void read_captured_options(const cxxopts::ParseResult& parsed, experiments::captured::ReadOptions& options) {
  try {
    options.steps = experiments::captured::parse_step_choice(parsed["steps"].as<std::string>());
  } catch (const core::InputError& error) {
    throw core::InputError(error.what(), "--steps");
  }
  options.host_us = parsed["host-us"].as<double>();
  if (!(options.host_us >= 0 && options.host_us <= 1e6))
    throw core::InputError("must be from 0 to 1,000,000 microseconds", "--host-us");
  options.alike = parsed.count("alike") > 0;
  if (parsed.count("kernels") > 0) options.kernels_path = parsed["kernels"].as<std::string>();
  if (parsed.count("groups") > 0) options.groups_path = parsed["groups"].as<std::string>();
}

void read_goal_options(const cxxopts::ParseResult& parsed, experiments::goal::GoalOptions& options) {
  options.overhead_ns = parsed["overhead-ns"].as<double>();
  options.calc_ns = parsed["calc-ns"].as<double>();
  options.eager_bytes = parsed["eager-bytes"].as<std::int64_t>();
  constexpr double kLargestNs = 1e9;
  for (const auto& [ns, option] : {std::pair{options.overhead_ns, "--overhead-ns"}, {options.calc_ns, "--calc-ns"}})
    if (!(ns >= 0 && ns <= kLargestNs)) throw core::InputError("must be from 0 to 1,000,000,000 nanoseconds", option);
  if (options.eager_bytes < 0) throw core::InputError("must be 0 or more", "--eager-bytes");
}

/// Reads where the times of collectives come from, and what ASTRA-sim is run with.
void read_collectives(const cxxopts::ParseResult& parsed, experiments::traces::AnyOptions& options) {
  using experiments::astra_sim::Congestion;
  const auto how = parsed["collectives"].as<std::string>();
  constexpr std::array<const char*, 5> kHow{"simulated", "as-recorded", "without-waiting", "as-astra",
                                            "as-astra-aware"};
  constexpr std::ptrdiff_t kProfilers = 3;  // those of a profiler's traces
  const std::ptrdiff_t chosen = std::find(kHow.begin(), kHow.end(), how) - kHow.begin();
  if (chosen == std::ssize(kHow))
    throw core::InputError(fmt::format("must be one of {}, not '{}'", fmt::join(kHow, ", "), how), "--collectives");
  const auto path = [&](const char* option) {
    return parsed.count(option) > 0 ? parsed[option].as<std::string>() : std::string();
  };
  const experiments::astra_sim::Paths astra{path("astra-system"), path("astra-network"), path("astra-memory")};
  const bool has_any = !(astra.system.empty() && astra.network.empty() && astra.memory.empty());
  if ((has_any || chosen >= kProfilers) && (astra.system.empty() || astra.network.empty()))
    throw core::InputError(has_any ? "must be there: ASTRA-sim's system.json and network.yml are read together"
                                   : fmt::format("must be there, as --collectives is {}", how),
                           astra.system.empty() ? "--astra-system" : "--astra-network");
  if (has_any) options.astra_sim = astra;
  if (chosen >= kProfilers)
    options.as_astra_sim = chosen == kProfilers ? Congestion::unaware : Congestion::aware;
  else
    options.profiler.collectives = static_cast<experiments::profiler::Collectives>(chosen);
}

/// Returns the files of an option that may be given many times, or once with commas between them.
std::vector<std::string> files_of(const std::vector<std::string>& given) {
  std::vector<std::string> files;
  for (std::string_view one : given) {
    for (std::size_t comma = one.find(','); comma != one.npos && !std::filesystem::exists(one); comma = one.find(',')) {
      files.emplace_back(one.substr(0, comma));
      one.remove_prefix(comma + 1);
    }
    files.emplace_back(one);
  }
  return files;
}

}  // namespace

void add_reader_options(cxxopts::Options& options) {
  const auto of = [](const char* option, const char* what) {
    return fmt::format("of {}: {}", experiments::traces::formats_with(option), what);
  };
  using Text = std::string;
  options.add_options("readers")("step", of("step", "the N of ProfilerStep#N, or of a range of NVTX, alone"),
                                 cxxopts::value<std::int64_t>(), "N")(
      "collectives",
      "of a profiler's traces: simulated, as-recorded, or without-waiting; of Chakra's traces with ASTRA-sim's files: "
      "simulated, as-astra (its congestion-unaware backend's times) or as-astra-aware",
      cxxopts::value<Text>()->default_value("simulated"),
      "HOW")("alike",
             "of a profiler's traces: the only one stands for all ranks of its job; of records of a capture: a rank "
             "without one does what the nearest rank below it with one did")(
      "ranks", "how many ranks run a workload of SimAI, a table of AICB or a single trace of Chakra",
      cxxopts::value<std::uint32_t>(),
      "N")("group-sizes", of("group-sizes", "sizes of groups that none of its rows says, as in tp=2,ep=8,pp=4"),
           cxxopts::value<Text>(), "SIZES")(
      "groups",
      "of Chakra's traces: ASTRA-sim's file of groups; of records that stand for others: the groups of ranks "
      "that communicators have",
      cxxopts::value<Text>(),
      "FILE")("one-at-a-time", of("one-at-a-time", "one operation of each resource at a time, as in ASTRA-sim"))(
      "astra-system", of("astra-system", "ASTRA-sim's system.json (docs/astra_sim.md)"), cxxopts::value<Text>(),
      "FILE")("astra-network", of("astra-network", "network.yml of ASTRA-sim's analytical backend"),
              cxxopts::value<Text>(), "FILE")("astra-memory", of("astra-memory", "ASTRA-sim's remote memory file"),
                                              cxxopts::value<Text>(), "FILE")(
      "steps",
      of("steps", "what is a step: last (the last period of what repeats), all, profiled, or lines FROM-TO of each"),
      cxxopts::value<Text>()->default_value("last"),
      "WHICH")("kernels", of("kernels", "a table of what kernels cost"), cxxopts::value<Text>(), "FILE")(
      "host-us", of("host-us", "how long each call takes its thread of the host"),
      cxxopts::value<double>()->default_value("0"),
      "US")("host-gaps", of("host-gaps", "the host takes the time between its calls"))(
      "host-traces", of("host-traces", "execution traces of their hosts, one for each, for shapes that they lack"),
      cxxopts::value<std::vector<Text>>(),
      "FILE,...")("overhead-ns", of("overhead-ns", "for how long a send or a receive occupies its cpu (o)"),
                  cxxopts::value<double>()->default_value("0"),
                  "NS")("eager-bytes", of("eager-bytes", "up to what size nobody waits for a send's receiver (S)"),
                        cxxopts::value<std::int64_t>()->default_value("65535"), "BYTES")(
      "calc-ns", of("calc-ns", "how long a unit of calc takes"), cxxopts::value<double>()->default_value("1"), "NS")(
      "bytes", of("bytes", "the size of the operation, as in 64MiB"), cxxopts::value<Text>(), "SIZE");
}

std::vector<std::string> given_options(const cxxopts::ParseResult& parsed) {
  std::vector<std::string> given;
  for (const cxxopts::KeyValue& argument : parsed.arguments()) {
    given.push_back(argument.key());
    if (argument.key() == "collectives") given.push_back(fmt::format("collectives {}", argument.value()));
  }
  return given;
}

experiments::traces::AnyOptions reader_options(const cxxopts::ParseResult& parsed) {
  experiments::traces::AnyOptions options;
  if (parsed.count("step") > 0) options.profiler.step = parsed["step"].as<std::int64_t>();
  read_collectives(parsed, options);
  options.profiler.alike = parsed.count("alike") > 0;
  if (parsed.count("host-traces") > 0)
    options.profiler.host_traces = files_of(parsed["host-traces"].as<std::vector<std::string>>());
  if (parsed.count("ranks") > 0) options.simai.gpus = options.chakra.ranks = parsed["ranks"].as<std::uint32_t>();
  if (parsed.count("group-sizes") > 0)
    options.simai.groups =
        experiments::simai::parse_group_sizes(parsed["group-sizes"].as<std::string>(), "--group-sizes");
  if (parsed.count("groups") > 0) options.chakra.groups_path = parsed["groups"].as<std::string>();
  options.chakra.one_at_a_time = parsed.count("one-at-a-time") > 0;
  read_captured_options(parsed, options.captured);
  read_goal_options(parsed, options.goal);
  options.flight.host_gaps = parsed.count("host-gaps") > 0;
  if (parsed.count("bytes") > 0) options.msccl.bytes = parse_size(parsed["bytes"].as<std::string>(), "--bytes", 1);
  return options;
}

}  // namespace manyworlds::farm::commands
