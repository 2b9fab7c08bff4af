// `manyworlds search --model M --cluster C`: writes the sweep of all layouts, prices it analytically and ranks it.
#include <fmt/format.h>

#include <iostream>

#include "core/error.hpp"
#include "farm/commands/shared_words.hpp"
#include "farm/commands/verbs.hpp"
#include "farm/commands/word_values.hpp"
#include "farm/exit_code.hpp"
#include "farm/frozen_job.hpp"
#include "farm/processors.hpp"
#include "farm/search_report.hpp"
#include "farm/search_space.hpp"
#include "farm/sweep_report.hpp"
#include "farm/sweep_run.hpp"
#include "farm/talk.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kMostDrawn = 2'000;

std::int64_t whole(const cxxopts::ParseResult& parsed, const char* word, std::int64_t least, std::int64_t most) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = static_cast<double>(least);
  info.maximum = static_cast<double>(most);
  return std::get<std::int64_t>(option_value(parsed[word].as<std::string>(), info, fmt::format("--{}", word)));
}

std::optional<std::int64_t> given(const cxxopts::ParseResult& parsed, const char* word, std::int64_t most) {
  if (parsed.count(word) == 0) return std::nullopt;
  return whole(parsed, word, 1, most);
}

struct Searched {
  std::string yaml;
  experiments::Sweep sweep;
};

/// The whole space, or as much of it as --sample says; where that says nothing and there is more than kMostDrawn, so
/// many are drawn.
Searched space_of(const cxxopts::ParseResult& parsed, const SearchSpace& space, const experiments::Catalog& catalog) {
  std::vector<std::string> set;
  if (parsed.count("set") > 0) set = parsed["set"].as<std::vector<std::string>>();
  take_assume_word(parsed, set);
  const auto read = [&](const std::string& yaml) {
    return Searched{yaml, experiments::parse_sweep(yaml, space.name + ".yaml", set, catalog)};
  };
  const std::string asked = parsed.count("sample") > 0 ? required(parsed, "sample") : "";
  const std::int64_t seed = whole(parsed, "seed", 0, 1'000'000'000);
  if (!asked.empty() && asked != "all")
    return read(with_sample(space.yaml, whole(parsed, "sample", 1, 1'000'000), seed));
  Searched all = read(space.yaml);
  const std::size_t valid = all.sweep.experiments.size();
  if (asked == "all" || valid <= static_cast<std::size_t>(kMostDrawn)) return all;
  tell("{} valid layouts; {} of them are drawn (--sample N takes more, --sample all takes them all)\n", valid,
       kMostDrawn);
  return read(with_sample(space.yaml, kMostDrawn, seed));
}

/// Runs `sweep` in `directory`, keeping what it gave in `results` if that is for this process to know.
int run(const RunOptions& options, const experiments::Sweep& sweep, bool share, Zygote& zygote,
        std::optional<io::Results>& results) {
  return run_sweep_job(
      options, frozen_job(sweep, {share, {}}),
      [&](const io::Results& made) {
        tell_lines(summary_text(made));
        results = made;
      },
      zygote);
}

}  // namespace

int run_search(const Invocation& invocation) {
  cxxopts::Options options("manyworlds search",
                           "Prices the layouts of a model on a cluster analytically, those that fit into memory, and "
                           "ranks them by tokens per second and GPU.");
  add_run_words(options);
  add_assume_word(options);
  options.add_options()("model", "a model of the catalog", cxxopts::value<std::string>(), "NAME")(
      "cluster", "a cluster of the catalog", cxxopts::value<std::string>(), "NAME")(
      "nodes", "its machines; default: as the catalog has it", cxxopts::value<std::string>(), "N")(
      "global-batch", "samples of one step; default: one for each GPU", cxxopts::value<std::string>(), "N")(
      "sequence", "tokens of a sample; default: the model's", cxxopts::value<std::string>(), "N")(
      "stack", "the training software, a stack of the catalog",
      cxxopts::value<std::string>()->default_value(SearchWords().stack),
      "NAME")("topology", "the fabric between the nodes",
              cxxopts::value<std::string>()->default_value(SearchWords().topology), "NAME")(
      "set", "override any key of the sweep; may be given many times", cxxopts::value<std::vector<std::string>>(),
      "KEY=VALUE")("catalog", "a folder with more gpus, models, clusters and stacks",
                   cxxopts::value<std::string>()->default_value(""), "DIR")(
      "k", "how many of the best are listed", cxxopts::value<std::string>()->default_value("10"), "N")(
      "packet", "simulate so many of the best packet by packet", cxxopts::value<std::string>(), "N")(
      "sample", fmt::format("how many valid layouts are drawn, or all; default: all up to {}", kMostDrawn),
      cxxopts::value<std::string>(),
      "N|all")("seed", "of what is drawn", cxxopts::value<std::string>()->default_value("1"), "N")(
      "o,output", "the run directory; default: runs/MODEL-on-GPUS", cxxopts::value<std::string>(), "RUN_DIR")(
      "sweep-yaml", "print the sweep that the search is, and run nothing")("json", "what is found, as JSON");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(run_words(*parsed, ""), "", false, *invocation.zygote);

  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  SearchWords words;
  words.model = required(*parsed, "model");
  words.cluster = required(*parsed, "cluster");
  words.stack = (*parsed)["stack"].as<std::string>();
  words.topology = (*parsed)["topology"].as<std::string>();
  words.nodes = given(*parsed, "nodes", 131'072);
  words.global_batch = given(*parsed, "global-batch", 16'777'216);
  words.sequence = given(*parsed, "sequence", 1'000'000'000);
  const std::int64_t k = whole(*parsed, "k", 1, 1'000'000);
  const auto packet = given(*parsed, "packet", 1'000'000);
  if (packet && launched_rank() && parsed->count("in-process") == 0)
    throw core::InputError(
        "a second run begins behind the first, which ranks of a launcher cannot: leave it out, or "
        "start the search plainly",
        "--packet");
  const SearchSpace space = search_space(words, catalog);
  const Searched searched = space_of(*parsed, space, catalog);
  if (parsed->count("sweep-yaml") > 0) {
    std::cout << searched.yaml;
    return kExitDone;
  }
  RunOptions run_options = run_words(*parsed, run_directory_of(*parsed, searched.sweep.name));
  check_before_work(run_options);
  std::optional<io::Results> screened;
  int code = run(run_options, searched.sweep, !no_sharing(*parsed), *invocation.zygote, screened);
  if (!screened) return code;
  SearchFindings findings{std::move(*screened), std::nullopt};
  std::vector<std::size_t> best = by_throughput(findings.screened);
  if (packet && !best.empty()) {
    best.resize(std::min(best.size(), static_cast<std::size_t>(*packet)));
    run_options.directory += ".packets";
    const int second =
        run(run_options, packet_sweep(searched.sweep, best), !no_sharing(*parsed), *invocation.zygote, findings.exact);
    if (second == kExitDrained) return second;
    code = std::max(code, second);
  }
  std::cout << (parsed->count("json") > 0 ? search_json(findings, k).dump(1) + "\n" : search_text(findings, k));
  return code;
}

}  // namespace manyworlds::farm::commands
