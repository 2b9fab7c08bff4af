// `manyworlds capture -- PROGRAM`: runs a CUDA program's ranks on a machine without a GPU, and records what they do.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/records/rank_groups.hpp"
#include "experiments/text/text.hpp"
#include "farm/capture/captured_ranks.hpp"
#include "farm/capture/elf_file.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {
namespace {

std::uint32_t number(const cxxopts::ParseResult& parsed, const std::string& name, std::uint32_t most) {
  const auto value = parsed[name].as<std::int64_t>();
  if (value < 1 || value > most)
    throw core::InputError(fmt::format("must be from 1 to {}, not {}", most, value), "--" + name);
  return static_cast<std::uint32_t>(value);
}

std::vector<std::uint32_t> ranks_of(const std::string& text, std::uint32_t world) {
  std::vector<std::uint32_t> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0u);
  if (text == "all") return ranks;
  try {
    ranks = experiments::programs::parse_ranks(text);
  } catch (const core::InputError& error) {
    throw core::InputError(error.what(), "--ranks");
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.back() >= world)
    throw core::InputError(fmt::format("has rank {}, and --world says that there are {}", ranks.back(), world),
                           "--ranks");
  return ranks;
}

int cuda_major(std::int64_t value) {
  if (std::find(kCudaMajors.begin(), kCudaMajors.end(), value) == kCudaMajors.end())
    throw core::InputError(fmt::format("must be {}, not {}", fmt::join(kCudaMajors, " or "), value), "--cuda");
  return static_cast<int>(value);
}

std::string text_of(const CapturedRank& rank) {
  const std::string calls = fmt::format("{} {} in {:.1f} s", rank.calls,
                                        core::plural(static_cast<std::size_t>(rank.calls), "call"), rank.seconds);
  return rank.what.empty() ? fmt::format("rank {}: {}", rank.rank, calls)
                           : fmt::format("rank {}: {}, then: {}", rank.rank, calls, rank.what);
}

int run_capture(const Invocation& invocation) {
  cxxopts::Options options("manyworlds capture",
                           "Runs the ranks of a CUDA program without a GPU and records what they do on its streams "
                           "(docs/capture.md).");
  options.add_options()("gpu", "the device that it is told of: a100_40, a100_80, h100_sxm, h200_sxm",
                        cxxopts::value<std::string>()->default_value("h100_sxm"), "NAME")(
      "memory", "memory of each device, such as 24G; what the catalog says of it if not given",
      cxxopts::value<std::string>(),
      "SIZE")("world", "ranks of the job", cxxopts::value<std::int64_t>()->default_value("1"), "N")(
      "ranks", "those that are run: all, or a list such as 0,8-15", cxxopts::value<std::string>()->default_value("all"),
      "LIST")("devices", "devices of each host", cxxopts::value<std::int64_t>()->default_value("1"), "N")(
      "cuda", "major version of CUDA for what does not name its libraries, such as a script: 12 or 13 (not given)",
      cxxopts::value<std::int64_t>(), "MAJOR")(
      "groups",
      "the ranks of communicators that a program makes by ncclCommSplit: a file such as {\"1\": [[0,1],[2,3]]}",
      cxxopts::value<std::string>(),
      "FILE")("to", "folder of the records", cxxopts::value<std::string>()->default_value("captured"), "FOLDER")(
      "j,jobs", "how many ranks run at once", cxxopts::value<std::int64_t>()->default_value("1"), "N");
  options.positional_help("-- PROGRAM [ARGUMENT...]");
  const auto end = std::find(invocation.arguments.begin(), invocation.arguments.end(), "--");
  const auto parsed = parse(options, {invocation.arguments.begin(), end});
  if (!parsed) return kExitDone;
  CaptureOptions capture;
  if (end != invocation.arguments.end()) capture.command.assign(end + 1, invocation.arguments.end());
  if (capture.command.empty() || capture.command.front().empty())
    throw core::InputError(
        "the program to capture is required, behind --: manyworlds capture -- PROGRAM [ARGUMENT...]");
  capture.gpu = (*parsed)["gpu"].as<std::string>();
  if (parsed->count("memory") > 0)
    capture.memory_bytes = parse_size((*parsed)["memory"].as<std::string>(), "--memory", 1);
  capture.world = number(*parsed, "world", experiments::programs::kMaxRanks);
  capture.ranks = ranks_of((*parsed)["ranks"].as<std::string>(), capture.world);
  capture.devices = number(*parsed, "devices", 1024);
  if (parsed->count("cuda") > 0) capture.cuda = cuda_major((*parsed)["cuda"].as<std::int64_t>());
  if (parsed->count("groups") > 0) {
    const auto path = (*parsed)["groups"].as<std::string>();
    capture.groups = experiments::captured::parse_groups(experiments::import::read_text(path), path, capture.world);
  }
  capture.folder = (*parsed)["to"].as<std::string>();
  capture.at_once = number(*parsed, "jobs", 4096);
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;  // a log has those alone that did not reach their end
  const std::vector<CapturedRank> ranks = capture_ranks(capture, [&](const CapturedRank& rank) {
    if (is_terminal || !rank.what.empty()) std::cerr << text_of(rank) << std::endl;
  });
  std::int64_t calls = 0;
  std::size_t ended = 0;
  for (const CapturedRank& rank : ranks) calls += rank.calls, ended += rank.what.empty() ? 1 : 0;
  std::cout << fmt::format("{} of {} {} reached {} end: {} calls, in {}\n", ended, ranks.size(),
                           core::plural(ranks.size(), "rank"), ranks.size() == 1 ? "its" : "their", calls,
                           capture.folder);
  if (ended < ranks.size()) return kExitFailed;
  std::cout << fmt::format("next: manyworlds program {}{} --to {}.jsonl\n", capture.folder,
                           ranks.size() < capture.world ? " --alike" : "", capture.folder);
  return kExitDone;
}

}  // namespace

Command capture_command() {
  return {.name = "capture", .summary = "records what a CUDA program does, without a GPU", .run = run_capture};
}

}  // namespace manyworlds::farm::commands
