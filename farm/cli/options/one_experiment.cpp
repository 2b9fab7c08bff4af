#include "farm/cli/options/one_experiment.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/base/error.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/sweep/single_experiment.hpp"

namespace manyworlds::farm::commands {

void add_experiment_options(cxxopts::Options& options) {
  add_spec_options(options);
  options.add_options()("experiment", "the one of a sweep that has this id", cxxopts::value<std::int64_t>(), "ID");
}

namespace {

/// Returns whether `other`, a "key=value", sets `key` or something below it.
bool sets_any_of(const std::string& other, std::string_view key) {
  return other.starts_with(key) && other.size() > key.size() && (other[key.size()] == '=' || other[key.size()] == '.');
}

}  // namespace

experiments::Sweep one_experiment(const cxxopts::ParseResult& parsed, const experiments::ReadOptions& options,
                                  const std::vector<std::string>& set) {
  SpecOptions spec_options = read_spec_options(parsed);
  for (const std::string& own : set) {
    const std::string_view key = std::string_view(own).substr(0, own.find('='));
    std::erase_if(spec_options.set, [&](const std::string& other) { return sets_any_of(other, key); });
    spec_options.set.push_back(own);
  }
  std::optional<std::int64_t> id;
  if (parsed.count("experiment") > 0) id = parsed["experiment"].as<std::int64_t>();
  return single_experiment(experiments::read_sweep(spec_options.spec, spec_options.set, spec_options.catalog, options),
                           id, spec_options.spec);
}

void require_every_packet(const experiments::Sweep& sweep, const std::string& option) {
  if (std::get<double>(sweep.experiments.front().settings.at("skip.rate_tolerance")) > 0)
    throw core::InputError(fmt::format(
        "{} simulates every packet, and skip.rate_tolerance allows some to be skipped: set it to 0", option));
}

}  // namespace manyworlds::farm::commands
