// `manyworlds net SPEC`: the network alone, with flows from a table or one collective over all GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/settings/calibration.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/one_experiment.hpp"
#include "farm/cli/word_values.hpp"
#include "farm/net/net_collective.hpp"
#include "farm/net/network_report.hpp"
#include "farm/run/ticking_line.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/verbs/verbs.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {

namespace {

using core::collective::Shape;
using experiments::import::Flow;

template <class Value>
Value named(const std::map<std::string, Value>& known, const std::string& name, const std::string& option) {
  std::vector<std::string> names;
  for (const auto& [each, value] : known) names.push_back(each);
  if (!known.count(name)) throw core::InputError(experiments::suggestion(name, names).substr(2), option + " " + name);
  return known.at(name);
}

std::string astra_word(const core::OptionInfo& info) {
  std::string word = "astra-" + info.name;
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

/// ASTRA-sim's options, one word each.
void add_astra_words(cxxopts::Options& options) {
  for (const core::OptionInfo& info : core::network::astra_sim_options().infos()) {
    const std::string range =
        fmt::format("{} to {}{}", info.minimum, info.maximum, info.unit.empty() ? "" : " " + info.unit);
    const std::string fallback = std::visit([](const auto& held) { return fmt::format("{}", held); }, info.fallback);
    options.add_options("astra-sim")(astra_word(info), fmt::format("{}; {}", info.help, range),
                                     cxxopts::value<std::string>()->default_value(fallback), "N");
  }
  options.add_options("astra-sim")("with-packets", "simulate the same packet by packet, and print both");
}

core::network::AstraSim astra_system(const cxxopts::ParseResult& parsed) {
  core::OptionSet values;
  for (const core::OptionInfo& info : core::network::astra_sim_options().infos())
    values[info.name] = option_value(parsed[astra_word(info)].as<std::string>(), info, "--" + astra_word(info));
  return core::network::astra_sim_options().make(values);
}

/// ASTRA-sim's estimate of the collective, and our simulation of it if asked for.
std::string compare_astra(const cxxopts::ParseResult& parsed, const core::step::Configuration& world,
                          const Shape& shape) {
  core::network::Router router(world.graph, world.transport.routing, static_cast<std::uint64_t>(world.transport.seed));
  const auto path = core::network::astra_sim_path(router, shape.members);
  const auto times = core::network::astra_sim(astra_system(parsed), shape, path);
  if (parsed.count("with-packets") > 0 && world.transport.fidelity != core::network::Fidelity::packet)
    throw core::InputError("--with-packets needs fidelity: packet");
  std::optional<NetworkRun> packets;
  if (parsed.count("with-packets") > 0) packets = run_collective(world, shape, parsed.count("plain") > 0);
  const AstraSimReport report{shape, path, times, packets ? &*packets : nullptr};
  return parsed.count("json") > 0 ? report.json() : report.text();
}

/// Refuses words that mean nothing together.
void check_words(const cxxopts::ParseResult& parsed) {
  const auto given = [&](const char* word) { return parsed.count(word) > 0; };
  if (given("flows") == given("collective"))
    throw core::InputError("give either --flows FILE.csv or --collective KIND (try -h)");
  for (const char* word : {"bytes", "algorithm"})
    if (given("flows") && given(word))
      throw core::InputError(fmt::format("--{} belongs to --collective (try -h)", word));
  if (given("csv") + given("links") + given("json") > 1)
    throw core::InputError("give one of --csv, --links and --json");
  const bool astra =
      named<bool>({{"packet", false}, {"astra-sim", true}}, parsed["model"].as<std::string>(), "--model");
  for (const char* word : {"flows", "csv", "links"})
    if (astra && given(word))
      throw core::InputError(
          fmt::format("--{} does not go with --model astra-sim, which knows when a collective ends "
                      "and no more (try -h)",
                      word));
  if (astra && given("plain") && !given("with-packets"))
    throw core::InputError("--plain is about packets: add --with-packets (try -h)");
  std::vector<std::string> words{"with-packets"};
  for (const core::OptionInfo& info : core::network::astra_sim_options().infos()) words.push_back(astra_word(info));
  for (const std::string& word : words)
    if (!astra && given(word.c_str()))
      throw core::InputError(fmt::format("--{} belongs to --model astra-sim (try -h)", word));
}

/// What `simulate` gives; meanwhile the terminal hears that it goes on.
NetworkRun telling(const std::function<NetworkRun()>& simulate) {
  const TickingLine line([](double elapsed_s) {
    return fmt::format("{:.0f} s: simulating packets; Ctrl-C ends it, fidelity: analytic bounds it at once", elapsed_s);
  });
  return simulate();
}

}  // namespace

int run_net(const Invocation& invocation) {
  cxxopts::Options options("manyworlds net", "The network alone, on the fabric, cluster and transport of SPEC.");
  add_experiment_words(options);
  options.add_options()("flows", "a table src,dst,bytes,start_ps of flows between GPUs", cxxopts::value<std::string>(),
                        "FILE.csv")(
      "collective", "one over all GPUs: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or reduce",
      cxxopts::value<std::string>(),
      "KIND")("bytes", "of the collective, per GPU, as in 1GiB", cxxopts::value<std::string>(), "SIZE")(
      "algorithm", "of the collective, or auto; otherwise what SPEC's collectives say (see `list collectives`)",
      cxxopts::value<std::string>()->default_value(""),
      "NAME")("plain", "every packet in one event loop, nothing remembered: the same times, slower")(
      "csv", "when each flow, or each GPU of the collective, is done")(
      "links", "what each link carried and for how long, as CSV")("json", "the summary and the links as JSON")(
      "model", "packet, or astra-sim: what ASTRA-sim's analytical backends say, for comparison",
      cxxopts::value<std::string>()->default_value("packet"), "NAME");
  add_astra_words(options);
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  check_words(*parsed);
  const bool plain = parsed->count("plain") > 0, csv = parsed->count("csv") > 0;

  experiments::Sweep sweep = one_experiment(*parsed, {.scope = experiments::Scope::network});
  // Flows are sent by no library, whose share of the NICs' rate would slow the links.
  if (parsed->count("flows") > 0) sweep.experiments.front().settings["collectives.protocol"] = std::string("none");
  if (plain) require_every_packet(sweep, "--plain");
  experiments::GraphCache graphs;
  const core::step::Configuration world = configure(sweep.experiments.front(), graphs);
  const auto print = [&](const NetworkReport& report) {
    std::cout << (parsed->count("links") > 0  ? report.links_csv()
                  : parsed->count("json") > 0 ? report.json()
                                              : report.text());
  };
  if (parsed->count("flows") > 0) {
    const auto flows = experiments::import::read_flows(required(*parsed, "flows"), world.graph->gpus);
    const NetworkRun run = telling([&] { return run_flows(world, flows, plain); });
    if (csv)
      std::cout << flows_csv(run, flows);
    else
      print({run, *world.graph, nullptr, world.transport.fidelity});
    return kExitDone;
  }
  const Shape shape =
      collective_of(world, (*parsed)["collective"].as<std::string>(), (*parsed)["algorithm"].as<std::string>(),
                    size_of(required(*parsed, "bytes"), "--bytes", 1));
  if ((*parsed)["model"].as<std::string>() == "astra-sim") {
    std::cout << compare_astra(*parsed, world, shape);
    return kExitDone;
  }
  const NetworkRun run = telling([&] { return run_collective(world, shape, plain); });
  if (csv)
    std::cout << members_csv(run);
  else
    print({run, *world.graph, &shape, world.transport.fidelity, experiments::describe_calibration(world.collectives)});
  if (!csv && parsed->count("links") == 0 && parsed->count("json") == 0) std::cout << io::told_assumed(sweep.assumed);
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
