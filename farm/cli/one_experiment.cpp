#include "farm/cli/one_experiment.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "farm/cli/shared_options.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Returns the axes that --set can pin, without the leaf columns that an axis over mappings creates.
std::string axes_of(const experiments::Sweep& sweep) {
  std::string names;
  for (const auto& column : sweep.columns) {
    bool leaf = false;
    for (const auto& other : sweep.columns) leaf |= column.name.starts_with(other.name + ".");
    if (!leaf) names += (names.empty() ? "" : ", ") + column.name;
  }
  return names;
}

}  // namespace

void add_experiment_options(cxxopts::Options& options) {
  add_spec_options(options);
  options.add_options()("experiment", "the one of a sweep that has this id", cxxopts::value<std::int64_t>(), "ID");
}

experiments::Sweep one_experiment(const cxxopts::ParseResult& parsed, const experiments::ReadOptions& options) {
  const SpecOptions spec_options = read_spec_options(parsed);
  experiments::Sweep sweep =
      experiments::read_sweep(spec_options.spec, spec_options.set, spec_options.catalog, options);
  const std::size_t count = sweep.experiments.size();
  std::size_t chosen = 0;
  if (parsed.count("experiment") > 0) {
    const auto id = parsed["experiment"].as<std::int64_t>();
    if (id < 0 || static_cast<std::size_t>(id) >= count)
      throw core::InputError(count == 0 ? std::string("no point of the sweep is valid")
                                        : fmt::format("the sweep's ids go from 0 to {}", count - 1),
                             fmt::format("--experiment {}", id));
    chosen = static_cast<std::size_t>(id);
  } else if (count + sweep.excluded.size() > 1) {
    throw core::InputError(
        fmt::format("has {} points; pin its axes ({}) with --set KEY=VALUE{}", count + sweep.excluded.size(),
                    axes_of(sweep), count > 0 ? fmt::format(", or pick one with --experiment 0 … {}", count - 1) : ""),
        spec_options.spec);
  } else if (count == 0) {
    if (sweep.refused.empty())
      throw core::InputError(fmt::format("its only point is left out by where '{}'", sweep.excluded.front().reason),
                             spec_options.spec);
    return sweep;
  }
  sweep.experiments = {sweep.experiments[chosen]};
  sweep.experiments.front().id = 0;
  sweep.excluded.clear();
  return sweep;
}

void require_every_packet(const experiments::Sweep& sweep, const std::string& option) {
  if (std::get<double>(sweep.experiments.front().settings.at("skip.rate_tolerance")) > 0)
    throw core::InputError(fmt::format(
        "{} simulates every packet, and skip.rate_tolerance allows some to be skipped: set it to 0", option));
}

}  // namespace manyworlds::farm::commands
