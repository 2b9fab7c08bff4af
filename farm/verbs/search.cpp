// `manyworlds search --model M --gpu G --gpus N`: writes the sweep of all layouts, screens it analytically, and
// simulates the best packet by packet until it is settled which is fastest.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "core/base/error.hpp"
#include "farm/cli/shared_words.hpp"
#include "farm/cli/word_values.hpp"
#include "farm/plan/frozen_job.hpp"
#include "farm/results/memory_advice.hpp"
#include "farm/search/search_report.hpp"
#include "farm/search/search_rounds.hpp"
#include "farm/search/search_space.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/processors.hpp"
#include "farm/system/talk.hpp"
#include "farm/verbs/verbs.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kMostScreened = 20'000;  // without --sample
constexpr std::int64_t kMostPackets = 64;       // without --packet

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

/// Words that each stand for a key: --tp 4 is --set strategy.tp=4, and --tp 2,4 leaves two values to the search.
struct KeyWord {
  const char *word, *key, *help;
};
constexpr KeyWord kKeyWords[] = {
    {"tp", "strategy.tp", "tensor-parallel size, or sizes: 2,4"},
    {"pp", "strategy.pp", "pipeline stages"},
    {"cp", "strategy.cp", "context-parallel size"},
    {"ep", "strategy.ep", "expert-parallel size"},
    {"zero", "strategy.zero", "ZeRO stage; 3 is FSDP"},
    {"micro-batch", "strategy.micro_batch", "samples of one micro-batch"},
    {"recompute", "strategy.recompute", "none, selective or full"},
    {"schedule", "strategy.schedule", "pipeline schedule, also one that the stack does not offer"},
    {"precision", "strategy.stack.precision", "of the layers' GEMMs: bf16, fp8, …"},
};

std::vector<std::string> set_words(const cxxopts::ParseResult& parsed) {
  std::vector<std::string> set;
  if (parsed.count("set") > 0) set = parsed["set"].as<std::vector<std::string>>();
  take_assume_word(parsed, set);
  for (const KeyWord& one : kKeyWords) {
    if (parsed.count(one.word) == 0) continue;
    const std::string value = required(parsed, one.word);
    const bool several = value.find(',') != std::string::npos;
    set.push_back(several ? fmt::format("{}=[{}]", one.key, value) : fmt::format("{}={}", one.key, value));
  }
  if (parsed.count("max-memory") > 0) {
    const auto bytes = size_of(required(parsed, "max-memory"), "--max-memory", 1LL << 30);
    set.push_back(fmt::format("cluster.gpu.memory_gib={}", static_cast<double>(bytes) / (1LL << 30)));
  }
  return set;
}

SearchWords search_words(const cxxopts::ParseResult& parsed) {
  SearchWords words;
  words.model = required(parsed, "model");
  if (parsed.count("cluster") > 0) words.cluster = required(parsed, "cluster");
  if (parsed.count("gpu") > 0) words.gpu = required(parsed, "gpu");
  if (words.cluster.empty() == words.gpu.empty())
    throw core::InputError(words.gpu.empty() ? "--cluster NAME or --gpu NAME is required"
                                             : "--cluster names the GPU too; leave --gpu out");
  words.stack = parsed["stack"].as<std::string>();
  words.topology = parsed["topology"].as<std::string>();
  words.gpus = given(parsed, "gpus", 131'072);
  words.nodes = given(parsed, "nodes", 131'072);
  words.global_batch = given(parsed, "global-batch", 16'777'216);
  words.sequence = given(parsed, "sequence", 1'000'000'000);
  words.all_schedules = parsed.count("all-schedules") > 0;
  words.set = set_words(parsed);
  return words;
}

struct Searched {
  std::string yaml;
  experiments::Sweep sweep;
};

/// The whole space, or as much of it as --sample says; where that says nothing and there is more than kMostScreened, so
/// many are drawn.
Searched space_of(const cxxopts::ParseResult& parsed, const SearchSpace& space, const experiments::Catalog& catalog) {
  const auto read = [&](const std::string& yaml) {
    return Searched{yaml, experiments::parse_sweep(yaml, space.name + ".yaml", {}, catalog)};
  };
  const std::string asked = parsed.count("sample") > 0 ? required(parsed, "sample") : "";
  const std::int64_t seed = whole(parsed, "seed", 0, 1'000'000'000);
  if (!asked.empty() && asked != "all")
    return read(with_sample(space.yaml, whole(parsed, "sample", 1, 1'000'000), seed));
  Searched all = read(space.yaml);
  const std::size_t valid = all.sweep.experiments.size();
  if (asked == "all" || valid <= static_cast<std::size_t>(kMostScreened)) return all;
  tell("{} valid layouts; {} of them are drawn (--sample N takes more, --sample all takes them all)\n", valid,
       kMostScreened);
  return read(with_sample(space.yaml, kMostScreened, seed));
}

/// One search: its screening and the rounds that simulate the best, each a run that the same line goes on with.
class Search {
 public:
  Search(RunOptions options, experiments::Sweep sweep, bool share, Zygote& zygote)
      : options_(std::move(options)), sweep_(std::move(sweep)), share_(share), zygote_(zygote) {}

  /// Simulates at most so many. Returns the exit code; there are findings unless it was stopped.
  int run(std::size_t most_packets);
  const std::optional<SearchFindings>& findings() const { return findings_; }

 private:
  int run_in(const std::filesystem::path& directory, const experiments::Sweep& sweep,
             std::optional<io::Results>& results);
  int simulate(std::size_t most_packets);
  std::filesystem::path beside(const std::string& name) const {
    return options_.directory.string() + ".search/" + name;
  }

  RunOptions options_;
  experiments::Sweep sweep_;
  bool share_;
  Zygote& zygote_;
  std::optional<SearchFindings> findings_;
};

/// Runs `sweep` in `directory`, keeping what it gave in `results` if that is for this process to know.
int Search::run_in(const std::filesystem::path& directory, const experiments::Sweep& sweep,
                   std::optional<io::Results>& results) {
  RunOptions options = options_;
  options.directory = directory;
  // What one round simulates the next one finds there.
  if (share_ && options.store == "none" && findings_) options.store = beside("store").string();
  return run_sweep_job(
      options, frozen_job(sweep, {share_, {}}), [&](const io::Results& made) { results = made; }, zygote_);
}

int Search::run(std::size_t most_packets) {
  const bool alone = most_packets == 0;
  const auto directory = alone ? options_.directory : beside("screening");
  tell("screening {} layouts analytically\n", sweep_.experiments.size());
  std::optional<io::Results> screened;
  const int code = run_in(directory, sweep_, screened);
  if (!screened) return code;
  if (none_fits(*screened)) {
    std::cout << none_fits_text(*screened, sweep_);
    return kExitFailed;
  }
  findings_ = SearchFindings{std::move(*screened), directory.string(), std::nullopt, {}};
  return alone || code == kExitDrained ? code : std::max(code, simulate(most_packets));
}

int Search::simulate(std::size_t most_packets) {
  const std::vector<std::size_t> ranked = by_throughput(findings_->screened);
  const std::vector<double> bounds = throughputs(findings_->screened, ranked);
  std::size_t count = next_round({}, ranked.size(), most_packets);
  while (count > 0) {
    const experiments::Sweep sweep =
        packet_sweep(sweep_, {ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count)});
    tell("simulating the best {} packet by packet\n", count);
    std::optional<io::Results> packets;
    if (const int code = run_in(beside(std::to_string(count)), sweep, packets); !packets)
      return findings_.reset(), code;
    findings_->settlement = settlement(bounds, throughputs(*packets));
    const std::size_t next = next_round(findings_->settlement, ranked.size(), most_packets);
    if (next == count) return run_in(options_.directory, sweep, findings_->packets);
    count = next;
  }
  return kExitDone;
}

}  // namespace

int run_search(const Invocation& invocation) {
  cxxopts::Options options("manyworlds search",
                           "Finds the fastest layout of a model on a cluster: all that fit into memory are screened "
                           "analytically, and the best simulated packet by packet until no other can be faster.");
  add_run_words(options);
  add_assume_word(options);
  options.add_options()("model", "a model of the catalog", cxxopts::value<std::string>(), "NAME")(
      "cluster", "a cluster of the catalog", cxxopts::value<std::string>(), "NAME")(
      "gpu", "instead of --cluster: the catalog's cluster of this GPU", cxxopts::value<std::string>(), "NAME")(
      "gpus", "how many GPUs; default: as the cluster has", cxxopts::value<std::string>(), "N")(
      "nodes", "how many machines, instead of --gpus", cxxopts::value<std::string>(), "N")(
      "global-batch", "samples of one step; default: one for each GPU", cxxopts::value<std::string>(), "N")(
      "sequence", "tokens of a sample; default: the model's", cxxopts::value<std::string>(), "N")(
      "stack", "the training software, a stack of the catalog",
      cxxopts::value<std::string>()->default_value(SearchWords().stack), "NAME");
  for (const KeyWord& one : kKeyWords)
    options.add_options()(one.word, one.help, cxxopts::value<std::string>(), "VALUE[,…]");
  options.add_options()("all-schedules", "also the pipeline schedules that the stack does not offer")(
      "max-memory", "what a GPU's memory is taken to be, as in 72GiB", cxxopts::value<std::string>(), "SIZE")(
      "topology", "the fabric between the nodes", cxxopts::value<std::string>()->default_value(SearchWords().topology),
      "NAME")("set", "override any key, or give a searched one its value or [values]; may be given many times",
              cxxopts::value<std::vector<std::string>>(),
              "KEY=VALUE")("catalog", "a folder with more gpus, models, clusters and stacks",
                           cxxopts::value<std::string>()->default_value(""), "DIR")(
      "k", "how many of the best are listed", cxxopts::value<std::string>()->default_value("10"), "N")(
      "packet", "how many to simulate packet by packet at most; 0: screen only",
      cxxopts::value<std::string>()->default_value(std::to_string(kMostPackets)),
      "N")("sample", fmt::format("screen so many valid layouts, drawn, or all; default: all up to {}", kMostScreened),
           cxxopts::value<std::string>(),
           "N|all")("seed", "of what is drawn", cxxopts::value<std::string>()->default_value("1"), "N")(
      "o,output", "the run directory; default: runs/MODEL-on-GPUS; the screening goes to RUN_DIR.search",
      cxxopts::value<std::string>(),
      "RUN_DIR")("sweep-yaml", "print the sweep that the search is, and run nothing")("json", "what is found, as JSON");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(run_words(*parsed, ""), "", false, *invocation.zygote);

  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  const SearchWords words = search_words(*parsed);
  const std::int64_t k = whole(*parsed, "k", 1, 1'000'000);
  const std::int64_t packets = whole(*parsed, "packet", 0, 1'000'000);
  if (packets > 0 && launched_rank() && parsed->count("in-process") == 0)
    throw core::InputError(
        "a second run begins behind the first, which ranks of a launcher cannot: give --packet 0, or start the search "
        "plainly",
        "--packet");
  const SearchSpace space = search_space(words, catalog);
  Searched searched = space_of(*parsed, space, catalog);
  if (parsed->count("sweep-yaml") > 0) {
    std::cout << searched.yaml;
    return kExitDone;
  }
  if (!words.global_batch) tell("assumed: a sample of each step for every GPU (--global-batch N)\n");
  if (!words.sequence) tell("assumed: the model's own sequence length (--sequence N)\n");
  const RunOptions run_options = run_words(*parsed, run_directory_of(*parsed, searched.sweep.name));
  check_before_work(run_options);
  Search search(run_options, std::move(searched.sweep), !no_sharing(*parsed), *invocation.zygote);
  const int code = search.run(static_cast<std::size_t>(packets));
  if (const auto& found = search.findings())
    std::cout << (parsed->count("json") > 0 ? search_json(*found, k).dump(1) + "\n" : search_text(*found, k));
  return code;
}

}  // namespace manyworlds::farm::commands
