// `manyworlds search --model M --gpu G --gpus N`: writes the sweep of all layouts, screens it analytically, and
// simulates the best packet by packet until it is certain which is the fastest. `manyworlds search SPEC.yaml`: searches
// the space of a document by moves (search_space_by_moves()).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "core/sharing/key.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/options/emit_options.hpp"
#include "farm/cli/options/job_options.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/options/symbolic_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/search/layout_search.hpp"
#include "farm/search/search_report.hpp"
#include "farm/search/search_space.hpp"
#include "farm/search/searched_job.hpp"
#include "farm/sweep/single_run.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/verbs/simulate/space_moves.hpp"
#include "io/log/file.hpp"
#include "io/report/report.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kMaxLayouts = 50'000;         // without --sample
constexpr std::int64_t kDefaultMaxSimulations = 64;  // without --packet
constexpr const char* kDefaultBudget = "60s";        // without --budget

std::int64_t integer_option(const cxxopts::ParseResult& parsed, const char* name, std::int64_t min_value,
                            std::int64_t max_value) {
  core::OptionInfo info;
  info.name = name;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = static_cast<double>(min_value);
  info.maximum = static_cast<double>(max_value);
  return std::get<std::int64_t>(parse_option_value(parsed[name].as<std::string>(), info, fmt::format("--{}", name)));
}

std::optional<std::int64_t> optional_integer(const cxxopts::ParseResult& parsed, const char* name,
                                             std::int64_t max_value) {
  if (parsed.count(name) == 0) return std::nullopt;
  return integer_option(parsed, name, 1, max_value);
}

/// Options that are short forms of a key: --tp 4 is --set strategy.tp=4, and --tp 2,4 lets the search choose between
/// two values.
struct KeyOption {
  const char *name, *key, *help;
};
constexpr KeyOption kKeyOptions[] = {
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

/// Returns the tokens that --tokens names: 15T, 300B, 2.5e12.
double parse_tokens(const cxxopts::ParseResult& parsed) {
  std::string text = required(parsed, "tokens");
  double unit = 1;
  if (const std::size_t letter = std::string_view("MBT").find(text.empty() ? ' ' : text.back());
      letter != std::string_view::npos) {
    constexpr std::array<double, 3> kUnits{1e6, 1e9, 1e12};
    unit = kUnits.at(letter);
    text.pop_back();
  }
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::real;
  info.minimum = 0.001;
  info.maximum = 1e18;
  info.unit = "tokens";
  return unit * std::get<double>(parse_option_value(text, info, "--tokens"));
}

std::vector<std::string> read_set_options(const cxxopts::ParseResult& parsed) {
  std::vector<std::string> set;
  if (parsed.count("set") > 0) set = parsed["set"].as<std::vector<std::string>>();
  apply_assume_option(parsed, set);
  for (const KeyOption& one : kKeyOptions) {
    if (parsed.count(one.name) == 0) continue;
    const std::string value = required(parsed, one.name);
    const bool several = value.find(',') != std::string::npos;
    set.push_back(several ? fmt::format("{}=[{}]", one.key, value) : fmt::format("{}={}", one.key, value));
  }
  if (parsed.count("tokens") > 0) set.push_back(fmt::format("training.tokens={}", parse_tokens(parsed)));
  if (parsed.count("max-memory") > 0) {
    const auto bytes = parse_size(required(parsed, "max-memory"), "--max-memory", 1LL << 30);
    set.push_back(fmt::format("cluster.gpu.memory_gib={}", static_cast<double>(bytes) / (1LL << 30)));
  }
  return set;
}

/// Returns the options that set keys as they were given: "--tp 3 --set strategy.split=even"; empty if there are none.
std::string given_keys(const cxxopts::ParseResult& parsed) {
  std::string text;
  const auto add = [&](const std::string& option, const std::string& value) {
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", option, value);
  };
  if (parsed.count("sequence") > 0) add("sequence", required(parsed, "sequence"));
  for (const KeyOption& one : kKeyOptions)
    if (parsed.count(one.name) > 0) add(one.name, required(parsed, one.name));
  if (parsed.count("set") > 0)
    for (const std::string& one : parsed["set"].as<std::vector<std::string>>()) add("set", one);
  return text;
}

SearchOptions read_search_options(const cxxopts::ParseResult& parsed) {
  SearchOptions search_options;
  if (parsed.count("like") == 0) search_options.model = required(parsed, "model");
  if (parsed.count("cluster") > 0) search_options.cluster = required(parsed, "cluster");
  if (parsed.count("gpu") > 0) search_options.gpu = required(parsed, "gpu");
  search_options.gpus_per_node = symbolic_node(parsed);
  if (!search_options.gpus_per_node && search_options.cluster.empty() == search_options.gpu.empty())
    throw core::InputError(search_options.gpu.empty() ? "--cluster NAME or --gpu NAME is required"
                                                      : "--cluster names the GPU too; leave --gpu out");
  search_options.stack = parsed["stack"].as<std::string>();
  search_options.topology = parsed["topology"].as<std::string>();
  search_options.node_list = parsed["node-list"].as<std::string>();
  search_options.gpus = optional_integer(parsed, "gpus", 131'072);
  search_options.nodes = optional_integer(parsed, "nodes", 131'072);
  search_options.global_batch = optional_integer(parsed, "global-batch", 16'777'216);
  search_options.sequence = optional_integer(parsed, "sequence", 1'000'000'000);
  search_options.all_schedules = parsed.count("all-schedules") > 0;
  search_options.set = read_set_options(parsed);
  return search_options;
}

/// Reads the job that --like names: it takes the place of the model, and says how many GPUs and samples there are.
std::optional<experiments::jobs::Job> read_searched_job(const cxxopts::ParseResult& parsed,
                                                        const experiments::Catalog& catalog, SearchOptions& options) {
  if (parsed.count("like") == 0) return std::nullopt;
  if (parsed.count("nodes") > 0) throw core::InputError("is what --like tells; leave it out", "--nodes");
  experiments::jobs::Job job = read_job_option(parsed, catalog);
  options.job = searched(job);
  if (parsed.count("stack") == 0) options.stack = job.stack;
  if (!options.gpus && options.node_list.empty() && job.gpus > 0) options.gpus = job.gpus;
  if (!options.gpus && options.node_list.empty()) fail_without_gpus(job);
  if (options.sequence) options.job->model["sequence"] = std::to_string(*options.sequence);
  for (const experiments::jobs::JobSetting& one : job.settings)
    if (one.key == "strategy.global_batch" && !options.global_batch) options.global_batch = std::stoll(one.value);
  options.sequence = std::stoll(options.job->model.at("sequence"));
  for (const std::string& line : explanation(job)) print_message("{}\n", line);
  return job;
}

/// Returns what of the gain over the job is that of the best layout alone.
LayoutGain layout_gain(experiments::Sweep own, const experiments::Settings& best, const std::string& file) {
  experiments::Experiment& one = own.experiments.front();
  const OtherSwitches others = other_switches(one.settings, best);
  if (others.names.empty()) return {};
  LayoutGain result{others.names, std::nullopt};
  one.settings = others.layout_alone;
  experiments::GraphCache graphs;
  if (find_violation(one.config(), graphs)) return result;
  print_message("simulating the best layout with the switches of {}\n", file);
  const double throughput = throughputs(SingleRun(own).results()).front();
  if (!std::isnan(throughput)) result.throughput = throughput;
  return result;
}

/// Returns where the job's own layout ranks, simulated as those of the search are.
std::string own_rank(const cxxopts::ParseResult& parsed, const SearchFindings& findings,
                     const experiments::Settings& best, const std::string& file) {
  // What the job itself takes is the answer's other half: it is simulated like the best, unless the user wants an end.
  const bool simulated = findings.simulated && findings.search_status.end != SearchEnd::stopped;
  const bool packets = findings.simulation == Simulation::packets;
  std::vector<std::string> set{!simulated ? "fidelity=analytic" : packets ? "fidelity=packet" : "fidelity=fluid"};
  for (const std::string& one : read_set_options(parsed))
    if (!one.starts_with("strategy.") && one.find("=[") == std::string::npos) set.push_back(one);
  for (const auto& [option, key] : {std::pair("global-batch", "strategy.global_batch"), {"sequence", "model.sequence"}})
    if (parsed.count(option) > 0) set.push_back(fmt::format("{}={}", key, required(parsed, option)));
  const std::string topology = parsed["topology"].as<std::string>();
  const bool own_fabric = parsed.count("cluster") > 0 && experiments::is_cluster_file(required(parsed, "cluster"));
  if (!topology.empty() || !own_fabric) set.push_back("topology=" + (topology.empty() ? "rail_optimized" : topology));
  if (simulated) print_message("simulating the layout of {} itself {}\n", file, words_of(findings.simulation));
  const experiments::Sweep own = job_experiment(parsed, set).sweep;
  const SingleRun run(own);
  const io::Results& results = simulated ? *findings.simulated : findings.screened;
  const double mine = throughputs(run.results()).front();
  const bool gains = best_of(throughputs(results)) > mine;  // false if the job itself does not run
  return own_rank_text(results, file, run.results(), gains ? layout_gain(own, best, file) : LayoutGain());
}

struct SearchInput {
  std::string yaml;
  experiments::Sweep sweep;
};

/// Returns the whole space, or the sample that --sample requests. Without --sample, a space of more than kMaxLayouts
/// layouts is sampled down to that number.
SearchInput read_space(const cxxopts::ParseResult& parsed, const SearchSpace& space,
                       const experiments::Catalog& catalog, std::optional<LayoutSearch::Clock::time_point> until) {
  experiments::ReadOptions options;
  if (until) options.is_over = [until] { return LayoutSearch::Clock::now() > *until; };
  const auto read = [&](const std::string& yaml) {
    try {
      return SearchInput{yaml, experiments::parse_sweep(yaml, space.name + ".yaml", {}, catalog, options)};
    } catch (const core::InputError& error) {
      // Nobody wrote the document: what is wrong with it is what was asked for.
      if (const std::string given = given_keys(parsed); !given.empty()) throw error.at(given, 0);
      throw;
    }
  };
  const std::string sample = parsed.count("sample") > 0 ? required(parsed, "sample") : "";
  const std::int64_t seed = integer_option(parsed, "seed", 0, 1'000'000'000);
  if (!sample.empty() && sample != "all")
    return read(with_sample(space.yaml, integer_option(parsed, "sample", 1, 1'000'000), seed));
  SearchInput all = read(space.yaml);
  const std::size_t valid = all.sweep.experiments.size();
  const bool is_part = all.sweep.unvisited > 0;
  if (sample == "all" || is_part || valid <= static_cast<std::size_t>(kMaxLayouts)) return all;
  print_message("{} valid layouts; {} of them are drawn (--sample N takes more, --sample all takes them all)\n", valid,
                kMaxLayouts);
  return read(with_sample(space.yaml, kMaxLayouts, seed));
}

/// Returns the lines above what is emitted: how fast it is, and where the job of --like ranks.
std::vector<std::string> title_of(const SearchFindings& found, const std::string& name, const std::string& own_rank) {
  std::vector<std::string> title{found_title(found, name)};
  std::istringstream lines(own_rank);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) title.emplace_back(experiments::import::trimmed(line, " "));
  return title;
}

/// Returns the options that name the job as they were given: " --like train.sh --env MBS=2"; empty without a job.
std::string like_words(const cxxopts::ParseResult& parsed) {
  if (parsed.count("like") == 0) return "";
  std::string text = " --like " + core::shell_quoted(required(parsed, "like"));
  if (parsed.count("env") > 0)
    for (const std::string& one : parsed["env"].as<std::vector<std::string>>())
      text += " --env " + core::shell_quoted(one);
  return text;
}

/// Returns the run that holds the answer.
std::filesystem::path answering_run(const SearchFindings& found) {
  return &final_results(found) == &found.screened ? found.screening : found.simulated_run;
}

/// Writes the report of the answer beside its results.
void write_page(const SearchFindings& found, std::int64_t k, const io::LaunchText& launch) {
  const std::filesystem::path run = answering_run(found);
  const std::filesystem::path file = run / "report.html";
  io::TopOptions top;
  top.k = k;
  io::write_atomically(file, io::report_page(final_results(found), top, launch));
  print_message("{}\n", file.string());
}

/// Returns the run directory; by default one for this very space, so that another search of the same model on the same
/// GPUs, with other options, has one of its own.
std::string search_directory_of(const cxxopts::ParseResult& parsed, const SearchInput& searched) {
  if (parsed.count("output") > 0) return required(parsed, "output");
  constexpr std::size_t kDigits = 6;
  core::sharing::KeyWriter writer("search");
  writer.text(searched.yaml);
  if (parsed["packet"].as<std::string>() == "0") writer.text("screening alone");  // another run than that of packets
  const std::string key = writer.finish().hex();
  return run_directory_of(parsed, searched.sweep.name) + "-" + key.substr(0, kDigits);
}

/// Returns on one line what the question leaves open, with the options that say otherwise, and what --emit implies.
std::string assumed_text(const SearchSpace& space, const experiments::jobs::EmitTarget* target, bool open_stack) {
  std::vector<std::string> assumed = space.assumed;
  if (open_stack)
    assumed.push_back(target == nullptr
                          ? fmt::format("strategy.stack={} (--stack NAME)", space.stack)
                          : fmt::format("strategy.stack={} (what --emit {} is launched with; --stack NAME)",
                                        space.stack, target->name));
  if (target != nullptr && !target->layouts.empty())
    assumed.push_back(
        fmt::format("only layouts that {} can run ({})", target->name, fmt::join(target->layouts, " and ")));
  return fmt::format("{}", fmt::join(assumed, ", "));
}

int run_search(const Invocation& invocation) {
  cxxopts::Options options("manyworlds search",
                           "Finds the fastest layout of a model on a cluster: of all that fit into memory, those that "
                           "their lower bounds leave open are screened analytically, and the best simulated packet by "
                           "packet until no other can be faster. With SPEC.yaml, the best of its space, by proof or by "
                           "moves.");
  add_run_options(options);
  add_assume_option(options);
  add_guess_option(options);
  add_like_options(options);
  add_emit_options(options, "the winner");
  add_symbolic_options(options);
  options.add_options()("model", "a model of the catalog, or the path of its config.json",
                        cxxopts::value<std::string>(), "NAME|PATH")(
      "cluster", "a cluster of the catalog, or a file that `manyworlds cluster` wrote", cxxopts::value<std::string>(),
      "NAME")("node-list", "hosts of a cluster file to run on, as in $SLURM_JOB_NODELIST",
              cxxopts::value<std::string>()->default_value(""),
              "LIST")("gpu", "instead of --cluster: the catalog's cluster of this GPU", cxxopts::value<std::string>(),
                      "NAME")("gpus", "how many GPUs; default: as the cluster has", cxxopts::value<std::string>(), "N")(
      "nodes", "how many machines, instead of --gpus", cxxopts::value<std::string>(), "N")(
      "global-batch", "samples of one step; default: one for each GPU", cxxopts::value<std::string>(), "N")(
      "sequence", "tokens of a sample; default: the model's", cxxopts::value<std::string>(), "N")(
      "stack", "the training software, a stack of the catalog",
      cxxopts::value<std::string>()->default_value(SearchOptions().stack), "NAME");
  for (const KeyOption& one : kKeyOptions)
    options.add_options()(one.name, one.help, cxxopts::value<std::string>(), "VALUE[,…]");
  options.add_options()("all-schedules", "also the pipeline schedules that the stack does not offer")(
      "tokens",
      "of the whole training run, as in 15T: the answer says how many days they take, and what they cost if a price is "
      "given (--set cluster.usd_per_gpu_hour=2)",
      cxxopts::value<std::string>(),
      "N")("max-memory", "what a GPU's memory is taken to be, as in 72GiB", cxxopts::value<std::string>(), "SIZE")(
      "topology", "the fabric between the nodes; default: the cluster file's own, otherwise rail_optimized",
      cxxopts::value<std::string>()->default_value(""),
      "NAME")("set", "override any key, or give a searched one its value or [values]; may be given many times",
              cxxopts::value<std::vector<std::string>>(),
              "KEY=VALUE")("catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
                           cxxopts::value<std::string>()->default_value(""), "DIR")(
      "k", "how many of the best are listed", cxxopts::value<std::string>()->default_value("10"), "N")(
      "packet", "how many to simulate packet by packet at most; 0: screen only",
      cxxopts::value<std::string>()->default_value(std::to_string(kDefaultMaxSimulations)),
      "N")("budget",
           "how long the search may take until it prints what it has found, as in 90s or 10m; 0: until nothing is left "
           "to simulate. The same line with more continues",
           cxxopts::value<std::string>()->default_value(kDefaultBudget), "DURATION")(
      "sample", fmt::format("take so many valid layouts, drawn, or all; default: all up to {}", kMaxLayouts),
      cxxopts::value<std::string>(),
      "N|all")("seed", "of what is drawn", cxxopts::value<std::string>()->default_value("1"), "N")(
      "o,output",
      "the run directory; default: runs/MODEL-on-GPUS-KEY, with a key of the space; the "
      "screening goes to RUN_DIR.search",
      cxxopts::value<std::string>(),
      "RUN_DIR")("sweep-yaml", "print the sweep of the search space, and run nothing")("json", "the findings as JSON")(
      "html", "also write the report of what was found as a page, report.html in its run directory");
  add_moves_options(options);
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const auto begin = LayoutSearch::Clock::now();
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(read_run_options(*parsed, ""), "", false, *invocation.zygote);

  if (parsed->count("spec") > 0) return search_space_by_moves(*parsed, *invocation.zygote);
  refuse_moves_options(*parsed);
  EmitOptions emit(*parsed);
  experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  SearchOptions search_options = read_search_options(*parsed);
  if (is_set(search_options, "fidelity"))
    throw core::InputError(
        "a search screens analytically and then simulates the best; --packet N says how many, --packet 0 none",
        "--set fidelity");
  if (experiments::is_cluster_file(search_options.cluster))
    catalog.add_cluster_file(search_options.cluster, search_options.cluster);
  const auto job = read_searched_job(*parsed, catalog, search_options);
  const std::int64_t k = integer_option(*parsed, "k", 1, 1'000'000);
  const std::int64_t packets = integer_option(*parsed, "packet", 0, 1'000'000);
  const SearchLimits limits{static_cast<std::size_t>(packets),
                            parse_duration((*parsed)["budget"].as<std::string>(), "--budget")};
  if (packets > 0 && launched_rank() && parsed->count("in-process") == 0)
    throw core::InputError(
        "a search starts a second run after the first, which the ranks of a launcher cannot do: give --packet 0, or "
        "start the search plainly",
        "--packet");
  // Without a stack or a job of another, the software is that of what is emitted.
  const experiments::jobs::EmitTarget* target = emit.target();
  const bool open_stack = parsed->count("stack") == 0 && !job && !is_set(search_options, "strategy.stack");
  if (target != nullptr && open_stack) search_options.stack = target->stack;
  if (target != nullptr) search_options.layouts = target->layouts;
  const SearchSpace space = search_space(search_options, catalog);
  print_message("listing the layouts of {}\n", space.name);
  std::optional<LayoutSearch::Clock::time_point> until;  // a third of the time, the rest is for what is found
  if (limits.budget.count() > 0 && parsed->count("sweep-yaml") == 0) until = begin + limits.budget / 3;
  SearchInput searched = read_space(*parsed, space, catalog, until);
  if (searched.sweep.experiments.empty()) {
    print_message("the time was over before a layout was found; give a longer --budget\n");
    return kExitFailed;
  }
  if (parsed->count("sweep-yaml") > 0) {
    std::cout << searched.yaml;
    return kExitDone;
  }
  refuse_guesses(*parsed, searched.sweep, catalog);
  emit.check_some(searched.sweep, job ? &*job : nullptr, catalog);
  if (const std::string asked = assumed_text(space, target, open_stack); !asked.empty()) {
    print_message("assumed: {}\n", asked);
    std::string& all = searched.sweep.assumed;
    all = all.empty() ? asked : asked + ", " + all;
  }
  if (search_options.gpus_per_node) {
    std::cout << symbolic_answer(*parsed, searched.sweep, k);
    return kExitDone;
  }
  const RunOptions run_options = read_run_options(*parsed, search_directory_of(*parsed, searched));
  print_message("run directory: {}\n", run_options.directory.string());
  check_preconditions(run_options);
  LayoutSearch search(run_options, std::move(searched.sweep), !no_sharing(*parsed), limits, *invocation.zygote, begin);
  const int code = search.run();
  if (const auto& found = search.findings()) {
    std::cout << (parsed->count("json") > 0 ? search_json(*found, k).dump(1) + "\n" : search_text(*found, k));
    const std::string own =
        job && parsed->count("json") == 0 ? own_rank(*parsed, *found, search.best(), job->file) : "";
    std::cout << own;
    const bool html = parsed->count("html") > 0, has_best = !by_throughput(final_results(*found)).empty();
    const experiments::jobs::Job* like = job ? &*job : nullptr;
    std::vector<std::string> title;
    if (has_best && (emit.any() || html)) title = title_of(*found, space.name, own);
    if (has_best) emit.emit(search.best(), like, catalog);
    emit.write(title);
    if (html) {
      experiments::jobs::OwnEmission emitted = emit.emitted();
      if (!emitted && has_best) emitted = emit_own(search.best(), like, catalog);
      write_page(*found, k, launch_text(answering_run(*found), emitted, like_words(*parsed), title));
    }
  } else if (code == kExitDone || code == kExitDrained) {
    const auto rows = static_cast<std::size_t>(k);
    std::cout << (parsed->count("json") > 0 ? search.bounds_json(rows).dump(1) + "\n" : search.bounds_text(rows));
  }
  return code;
}

}  // namespace

Command search_command() {
  return {.name = "search",
          .summary = "the layouts of a model on a cluster, priced and ranked",
          .run = run_search,
          .simulates = true};
}

}  // namespace manyworlds::farm::commands
