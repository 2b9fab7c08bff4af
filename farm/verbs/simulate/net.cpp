// `manyworlds net SPEC`: the network alone, with flows from a table or one collective over all GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/catalog/calibration.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/options/one_experiment.hpp"
#include "farm/cli/options/thread_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/net/net_collective.hpp"
#include "farm/net/network_report.hpp"
#include "farm/run/ticking_line.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/thread_pool.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {

namespace {

using core::collective::Shape;
using experiments::import::Flow;

template <class Value>
Value named(const std::map<std::string, Value>& known, const std::string& name, const std::string& option) {
  std::vector<std::string> names;
  for (const auto& [known_name, value] : known) names.push_back(known_name);
  if (!known.count(name)) throw core::InputError(experiments::suggestion(name, names).substr(2), option + " " + name);
  return known.at(name);
}

std::string astra_option(const core::OptionInfo& info) {
  std::string name = "astra-" + info.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// Adds one option for each of ASTRA-sim's parameters.
void add_astra_options(cxxopts::Options& options) {
  for (const core::OptionInfo& info : core::network::astra_sim_options().infos()) {
    const std::string range =
        fmt::format("{} to {}{}", info.minimum, info.maximum, info.unit.empty() ? "" : " " + info.unit);
    const std::string default_value =
        std::visit([](const auto& held) { return fmt::format("{}", held); }, info.default_value);
    options.add_options("astra-sim")(astra_option(info), fmt::format("{}; {}", info.help, range),
                                     cxxopts::value<std::string>()->default_value(default_value), "N");
  }
  options.add_options("astra-sim")("with-packets", "simulate the same packet by packet, and print both");
}

core::network::AstraSim astra_system(const cxxopts::ParseResult& parsed) {
  core::OptionSet values;
  for (const core::OptionInfo& info : core::network::astra_sim_options().infos())
    values[info.name] =
        parse_option_value(parsed[astra_option(info)].as<std::string>(), info, "--" + astra_option(info));
  return core::network::astra_sim_options().make(values);
}

/// Returns ASTRA-sim's estimate of the collective, and our packet simulation of it if requested.
std::string compare_astra(const cxxopts::ParseResult& parsed, const core::step::Configuration& configuration,
                          const Shape& shape) {
  core::network::Router router(configuration.graph, core::network::path_choice_of(configuration.transport));
  const auto path = core::network::astra_sim_path(router, shape.members);
  const auto times = core::network::astra_sim(astra_system(parsed), shape, path);
  if (parsed.count("with-packets") > 0 && configuration.transport.fidelity != core::network::Fidelity::packet)
    throw core::InputError("--with-packets needs fidelity: packet");
  std::optional<NetworkRun> packets;
  if (parsed.count("with-packets") > 0) packets = run_collective(configuration, shape, parsed.count("plain") > 0);
  const AstraSimReport report{shape, path, times, packets ? &*packets : nullptr};
  return parsed.count("json") > 0 ? report.json() : report.text();
}

/// Rejects combinations of options that have no meaning.
void check_options(const cxxopts::ParseResult& parsed) {
  const auto given = [&](const char* name) { return parsed.count(name) > 0; };
  if (given("flows") == given("collective"))
    throw core::InputError("give either --flows FILE.csv or --collective KIND (try -h)");
  for (const char* name : {"bytes", "algorithm"})
    if (given("flows") && given(name))
      throw core::InputError(fmt::format("--{} belongs to --collective (try -h)", name));
  if (given("csv") + given("links") + given("json") > 1)
    throw core::InputError("give one of --csv, --links and --json");
  const bool astra =
      named<bool>({{"packet", false}, {"astra-sim", true}}, parsed["model"].as<std::string>(), "--model");
  for (const char* name : {"flows", "csv", "links"})
    if (astra && given(name))
      throw core::InputError(
          fmt::format("--{} does not go with --model astra-sim, which knows when a collective ends "
                      "and no more (try -h)",
                      name));
  if (astra && given("plain") && !given("with-packets"))
    throw core::InputError("--plain is about packets: add --with-packets (try -h)");
  std::vector<std::string> option_names{"with-packets"};
  for (const core::OptionInfo& info : core::network::astra_sim_options().infos())
    option_names.push_back(astra_option(info));
  for (const std::string& name : option_names)
    if (!astra && given(name.c_str()))
      throw core::InputError(fmt::format("--{} belongs to --model astra-sim (try -h)", name));
}

/// Runs `simulate` while a progress line shows the elapsed time.
NetworkRun with_progress(const std::function<NetworkRun()>& simulate) {
  const TickingLine line([](double elapsed_s) {
    return fmt::format("{:.0f} s: simulating packets; Ctrl-C ends it, fidelity: analytic bounds it at once", elapsed_s);
  });
  return simulate();
}

int run_net(const Invocation& invocation) {
  cxxopts::Options options("manyworlds net", "The network alone, on the fabric, cluster and transport of SPEC.");
  add_experiment_options(options);
  options.add_options()("flows", "a table src,dst,bytes,start_ps of flows between GPUs", cxxopts::value<std::string>(),
                        "FILE.csv")(
      "collective", "one over all GPUs: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or reduce",
      cxxopts::value<std::string>(),
      "KIND")("bytes", "of the collective, per GPU, as in 1GiB", cxxopts::value<std::string>(), "SIZE")(
      "algorithm", "of the collective, or auto; otherwise what SPEC's collectives say (see `list collectives`)",
      cxxopts::value<std::string>()->default_value(""),
      "NAME")("plain", "every packet in one event loop, without caching: the same times, slower")(
      "csv", "when each flow, or each GPU of the collective, is done")(
      "links", "what each link carried and for how long, as CSV")("json", "the summary and the links as JSON")(
      "model", "packet, or astra-sim: what ASTRA-sim's analytical backends say, for comparison",
      cxxopts::value<std::string>()->default_value("packet"), "NAME");
  add_thread_options(options);
  add_astra_options(options);
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  check_options(*parsed);
  const bool plain = parsed->count("plain") > 0, csv = parsed->count("csv") > 0;

  experiments::Sweep sweep = one_experiment(*parsed, {.scope = experiments::Scope::network});
  // No communication library sends flows, so its share of the NIC rate must not slow the links.
  if (parsed->count("flows") > 0) sweep.experiments.front().settings["collectives.protocol"] = std::string("none");
  if (plain) require_every_packet(sweep, "--plain");
  experiments::GraphCache graphs;
  const core::step::Configuration configuration = configure(sweep.experiments.front(), graphs);
  ThreadPool pool(threads_of(*parsed));
  const auto print = [&](const NetworkReport& report) {
    std::cout << (parsed->count("links") > 0  ? report.links_csv()
                  : parsed->count("json") > 0 ? report.json()
                                              : report.text());
  };
  if (parsed->count("flows") > 0) {
    const auto flows = experiments::import::read_flows(required(*parsed, "flows"), configuration.graph->gpus);
    const NetworkRun run = with_progress([&] { return run_flows(configuration, flows, plain, &pool); });
    if (csv)
      std::cout << flows_csv(run, flows);
    else
      print({run, *configuration.graph, nullptr, configuration.transport.fidelity, "no", configuration.failures});
    return kExitDone;
  }
  const auto kind = (*parsed)["collective"].as<std::string>(), algorithm = (*parsed)["algorithm"].as<std::string>();
  const std::int64_t bytes = parse_size(required(*parsed, "bytes"), "--bytes", 1);
  const Shape shape = collective_of(configuration, kind, algorithm, bytes);
  if ((*parsed)["model"].as<std::string>() == "astra-sim") {
    std::cout << compare_astra(*parsed, configuration, shape);
    return kExitDone;
  }
  const NetworkRun run = with_progress([&] { return run_collective(configuration, shape, plain, &pool); });
  if (csv)
    std::cout << members_csv(run);
  else
    print({run, *configuration.graph, &shape, configuration.transport.fidelity,
           experiments::describe_calibration(configuration.collectives), configuration.failures,
           tuner_of(configuration, kind, algorithm, bytes)});
  if (!csv && parsed->count("links") == 0 && parsed->count("json") == 0) std::cout << io::assumed_text(sweep.assumed);
  return kExitDone;
}

}  // namespace

Command net_command() {
  return {.name = "net", .summary = "the network alone: flows or a collective on a topology", .run = run_net};
}

}  // namespace manyworlds::farm::commands
