#include "farm/cli/options/symbolic_options.hpp"

#include <fmt/format.h>

#include <array>

#include "core/base/error.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/search/symbolic_order.hpp"

namespace manyworlds::farm::commands {
namespace {

constexpr std::int64_t kGpusPerNode = 8;

struct BalanceOption {
  const char *name, *help;
  double core::step::Balance::*member;
};
constexpr std::array<BalanceOption, 4> kBalanceOptions{
    {{"flops-per-byte", "with --symbolic: 16-bit FLOPs that a byte sent inside a node weighs",
      &core::step::Balance::flops_per_byte},
     {"flops-per-memory-byte", "with --symbolic: FLOPs that a byte read or written in memory weighs",
      &core::step::Balance::flops_per_memory_byte},
     {"flops-per-us", "with --symbolic: FLOPs that a microsecond of the software's host weighs, which launches kernels",
      &core::step::Balance::flops_per_us},
     {"node-factor", "with --symbolic: how many times as much a byte weighs that is sent between nodes",
      &core::step::Balance::node_factor}}};

double real_option(const cxxopts::ParseResult& parsed, const std::string& name) {
  core::OptionInfo info;
  info.name = name;
  info.kind = core::OptionInfo::Kind::real;
  info.minimum = 0, info.maximum = 1e15;
  return std::get<double>(parse_option_value(required(parsed, name), info, "--" + name));
}

}  // namespace

void add_symbolic_options(cxxopts::Options& options) {
  options.add_options()("symbolic",
                        "order the layouts by what they compute and send alone: no GPU, cluster or fabric is read, and "
                        "nothing is simulated")(
      "gpus-per-node", fmt::format("with --symbolic: GPUs of a node; default: {}", kGpusPerNode),
      cxxopts::value<std::string>(), "N");
  for (const BalanceOption& one : kBalanceOptions)
    options.add_options()(one.name, fmt::format("{}; default: {:g}", one.help, core::step::Balance().*one.member),
                          cxxopts::value<std::string>(), "X");
}

std::optional<std::int64_t> symbolic_node(const cxxopts::ParseResult& parsed) {
  if (parsed.count("symbolic") == 0) {
    for (const char* name : {"gpus-per-node", "flops-per-byte", "flops-per-memory-byte", "flops-per-us", "node-factor"})
      if (parsed.count(name) > 0) throw core::InputError("means nothing without --symbolic", fmt::format("--{}", name));
    return std::nullopt;
  }
  for (const char* name :
       {"cluster", "gpu", "nodes", "node-list", "topology", "packet", "tokens", "output", "html", "emit", "emit-to"})
    if (parsed.count(name) > 0)
      throw core::InputError("has no meaning beside --symbolic, which reads no hardware and simulates nothing",
                             fmt::format("--{}", name));
  if (parsed.count("set") > 0)
    for (const std::string& one : parsed["set"].as<std::vector<std::string>>())
      for (const char* section : {"cluster.", "topology", "transport", "faults", "training."})
        if (one.starts_with(section))
          throw core::InputError("has no meaning beside --symbolic, which reads no hardware", "--set " + one);
  if (parsed.count("gpus-per-node") == 0) return kGpusPerNode;
  core::OptionInfo info;
  info.name = "gpus-per-node";
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = 1, info.maximum = 1024;
  return std::get<std::int64_t>(parse_option_value(required(parsed, "gpus-per-node"), info, "--gpus-per-node"));
}

std::string symbolic_answer(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep, std::int64_t k) {
  core::step::Balance balance;
  for (const BalanceOption& one : kBalanceOptions)
    if (parsed.count(one.name) > 0) balance.*one.member = real_option(parsed, one.name);
  std::optional<std::int64_t> memory;
  if (parsed.count("max-memory") > 0) memory = parse_size(required(parsed, "max-memory"), "--max-memory", 1LL << 30);
  const SymbolicOrder order = symbolic_order(sweep, balance, memory);
  const auto rows = static_cast<std::size_t>(k);
  return parsed.count("json") > 0 ? symbolic_json(sweep, order, rows).dump(1) + "\n"
                                  : symbolic_text(sweep, order, rows);
}

}  // namespace manyworlds::farm::commands
