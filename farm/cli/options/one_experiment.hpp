// The options with which `run` and `net` select one experiment: a SPEC that has only one, or an id within a sweep.
#pragma once

#include "experiments/sweep/experiment.hpp"
#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

void add_experiment_options(cxxopts::Options& options);

/// Returns the sweep of SPEC reduced to one experiment with id 0. Throws core::InputError, which says how to pin axes,
/// if there are several. If refused experiments are kept, the only one may be in Sweep::refused and none in
/// Sweep::experiments. Each "key=value" of `set` takes the place of those of --set with its key, or below it.
experiments::Sweep one_experiment(const cxxopts::ParseResult& parsed, const experiments::ReadOptions& options = {},
                                  const std::vector<std::string>& set = {});
/// For options that require every packet: throws core::InputError if the experiment allows packets to be skipped by
/// rate.
void require_every_packet(const experiments::Sweep& sweep, const std::string& option);

}  // namespace manyworlds::farm::commands
