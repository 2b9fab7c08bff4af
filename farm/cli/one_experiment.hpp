// The words with which `run` and `net` name one experiment: a SPEC that has only one, or one of a sweep's by its id.
#pragma once

#include "experiments/sweep/experiment.hpp"
#include "farm/cli/command.hpp"

namespace manyworlds::farm::commands {

void add_experiment_words(cxxopts::Options& options);

/// The sweep of SPEC with that one experiment in it, its id 0. Throws InputError, saying how to pin axes, where there
/// are several. Where refused ones are kept the only one may be in Sweep::refused, and nothing in Sweep::experiments.
experiments::Sweep one_experiment(const cxxopts::ParseResult& parsed, const experiments::ReadOptions& options = {});
/// For words that ask for every packet: throws InputError if the experiment lets some be passed over by rate.
void require_every_packet(const experiments::Sweep& sweep, const std::string& word);

}  // namespace manyworlds::farm::commands
