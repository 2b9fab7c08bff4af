// `manyworlds net SPEC`: the network alone, with flows from a table or one collective over all GPUs.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "experiments/import/scalar.hpp"
#include "experiments/nearest.hpp"
#include "farm/commands/one_experiment.hpp"
#include "farm/commands/verbs.hpp"
#include "farm/exit_code.hpp"
#include "farm/network_only.hpp"

namespace manyworlds::farm::commands {

namespace {

using core::collective::Algorithm;
using core::collective::Kind;
using core::collective::Shape;
using experiments::import::Flow;
using Json = nlohmann::ordered_json;

template <class Value>
Value named(const std::map<std::string, Value>& known, const std::string& name, const std::string& option) {
  std::vector<std::string> names;
  for (const auto& [each, value] : known) names.push_back(each);
  if (!known.count(name)) throw core::InputError(experiments::suggestion(name, names).substr(2), option + " " + name);
  return known.at(name);
}

std::int64_t bytes_of(const std::string& text) {
  core::OptionInfo info;
  info.unit = "bytes";
  info.minimum = 1;
  info.maximum = static_cast<double>(std::int64_t{1} << 50);
  experiments::import::Node node;
  node.kind = experiments::import::Node::Kind::scalar;
  node.text = text;
  node.file = std::make_shared<const std::string>("--bytes " + text);
  return std::get<std::int64_t>(experiments::import::read_value(node, info, "bytes"));
}

Shape shape_of(const cxxopts::ParseResult& parsed, const core::step::Configuration& world) {
  static const std::map<std::string, Kind> kinds{{"all_reduce", Kind::all_reduce},
                                                 {"all_gather", Kind::all_gather},
                                                 {"reduce_scatter", Kind::reduce_scatter},
                                                 {"all_to_all", Kind::all_to_all}};
  static const std::map<std::string, Algorithm> algorithms{{"ring", Algorithm::ring},
                                                           {"two_level", Algorithm::two_level}};
  Shape shape;
  shape.kind = named(kinds, parsed["collective"].as<std::string>(), "--collective");
  shape.algorithm = named(algorithms, parsed["algorithm"].as<std::string>(), "--algorithm");
  shape.members = world.graph->gpus;
  shape.bytes = bytes_of(required(parsed, "bytes"));
  if (shape.members < 2) throw core::InputError("a collective needs at least two GPUs", "--collective");
  if (shape.algorithm == Algorithm::two_level) {
    shape.per_node = static_cast<std::uint32_t>(world.gpus_per_node);
    if (shape.per_node < 2 || shape.per_node == shape.members)
      throw core::InputError("needs several nodes with several GPUs each", "--algorithm two_level");
  }
  return shape;
}

/// Bytes that leave each member over the time, in GB/s: the bus bandwidth as NCCL's tests define it.
double bus_gb_per_s(const Shape& shape, core::Time elapsed) {
  const double n = shape.members;
  const double factor = (shape.kind == Kind::all_reduce ? 2 : 1) * (n - 1) / n;
  return factor * static_cast<double>(shape.bytes) / core::seconds(elapsed) * 1e-9;
}

double ns_per_hop(const NetworkRun& run, std::int64_t hops) {
  return hops > 0 ? run.cpu_s * 1e9 / static_cast<double>(hops) : 0;
}

Json as_json(const NetworkRun& run, const Shape* shape) {
  const Completion completion = completion_of(run);
  Json made{{shape != nullptr ? "members" : "flows", run.ends.size()},
            {"completion_ps",
             {{"min", completion.min},
              {"mean", completion.mean},
              {"p50", completion.p50},
              {"p99", completion.p99},
              {"max", completion.max}}},
            {"end_ps", run.end()},
            {"ecn_marks", run.counters.ecn_marks},
            {"pauses", run.counters.pauses},
            {"link_hops", run.counters.link_hops},
            {"link_hops_simulated", run.simulated_link_hops},
            {"cpu_s", run.cpu_s},
            {"ns_per_link_hop", ns_per_hop(run, run.counters.link_hops)},
            {"ns_per_link_hop_simulated", ns_per_hop(run, run.simulated_link_hops)}};
  if (shape != nullptr) made["collective"] = shape->text(), made["bus_gb_per_s"] = bus_gb_per_s(*shape, run.end());
  return made;
}

std::string as_text(const NetworkRun& run, const Shape* shape) {
  const Completion completion = completion_of(run);
  const auto us = [](double ps) { return fmt::format("{:.3f} us", ps / static_cast<double>(core::kMicrosecond)); };
  const auto time = [&](core::Time ps) { return us(static_cast<double>(ps)); };
  std::string text = shape != nullptr ? shape->text() + ", completion of its members\n"
                                      : fmt::format("{} flows, completion times\n", run.ends.size());
  text += fmt::format("  min {}  mean {}  p50 {}  p99 {}  max {}\n", time(completion.min), us(completion.mean),
                      time(completion.p50), time(completion.p99), time(completion.max));
  if (shape != nullptr) text += fmt::format("bus bandwidth {:.3f} GB/s\n", bus_gb_per_s(*shape, run.end()));
  text += fmt::format("{} packets marked, {} pauses\n", run.counters.ecn_marks, run.counters.pauses);
  text += fmt::format("{} link-hops, {} of them simulated; ", run.counters.link_hops, run.simulated_link_hops);
  text += fmt::format("{:.3f} s of CPU, {:.1f} ns per link-hop ({:.1f} per simulated one)\n", run.cpu_s,
                      ns_per_hop(run, run.counters.link_hops), ns_per_hop(run, run.simulated_link_hops));
  return text;
}

std::string flows_csv(const NetworkRun& run, const std::vector<Flow>& flows) {
  std::string text = "src,dst,bytes,start_ps,end_ps\n";
  for (std::size_t i = 0; i < flows.size(); ++i)
    text += fmt::format("{},{},{},{},{}\n", flows[i].source, flows[i].destination, flows[i].bytes, flows[i].start_ps,
                        run.ends[i]);
  return text;
}

std::string members_csv(const NetworkRun& run) {
  std::string text = "gpu,end_ps\n";
  for (std::size_t i = 0; i < run.ends.size(); ++i) text += fmt::format("{},{}\n", i, run.ends[i]);
  return text;
}

}  // namespace

int run_net(const Invocation& invocation) {
  cxxopts::Options options("manyworlds net", "The network alone, on the fabric, cluster and transport of SPEC.");
  add_experiment_words(options);
  options.add_options()("flows", "a table src,dst,bytes,start_ps of flows between GPUs", cxxopts::value<std::string>(),
                        "FILE.csv")("collective",
                                    "one over all GPUs: all_reduce, all_gather, reduce_scatter or all_to_all",
                                    cxxopts::value<std::string>(), "KIND")(
      "bytes", "of the collective, per GPU, as in 1GiB", cxxopts::value<std::string>(), "SIZE")(
      "algorithm", "of the collective: ring or two_level", cxxopts::value<std::string>()->default_value("ring"),
      "NAME")("plain", "every packet in one event loop, nothing remembered: the same times, slower")(
      "csv", "when each flow, or each GPU of the collective, is done")("json", "the summary as JSON");
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const bool flows_given = parsed->count("flows") > 0, collective = parsed->count("collective") > 0;
  if (flows_given == collective) throw core::InputError("give either --flows FILE.csv or --collective KIND (try -h)");
  for (const char* word : {"bytes", "algorithm"})
    if (flows_given && parsed->count(word) > 0)
      throw core::InputError(fmt::format("--{} belongs to --collective (try -h)", word));
  const bool plain = parsed->count("plain") > 0, csv = parsed->count("csv") > 0, json = parsed->count("json") > 0;
  if (csv && json) throw core::InputError("give either --csv or --json");

  const experiments::Sweep sweep = one_experiment(*parsed);
  experiments::GraphCache graphs;
  const core::step::Configuration world = configure(sweep.experiments.front(), graphs);
  if (flows_given) {
    const auto flows = experiments::import::read_flows(required(*parsed, "flows"), world.graph->gpus);
    const NetworkRun run = run_flows(world, flows, plain);
    std::cout << (csv ? flows_csv(run, flows) : json ? as_json(run, nullptr).dump(1) + "\n" : as_text(run, nullptr));
  } else {
    const Shape shape = shape_of(*parsed, world);
    const NetworkRun run = run_collective(world, shape, plain);
    std::cout << (csv ? members_csv(run) : json ? as_json(run, &shape).dump(1) + "\n" : as_text(run, &shape));
  }
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
