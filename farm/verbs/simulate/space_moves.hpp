// `manyworlds search SPEC.yaml`: the best of a space, by its sweep and by moves from there.
#pragma once

#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

/// SPEC, --best, --gap, --moves and --threshold.
void add_moves_options(cxxopts::Options& options);
/// Throws core::InputError, naming the option, for one of these without SPEC.
void refuse_moves_options(const cxxopts::ParseResult& parsed);
/// Returns the exit code. Throws core::InputError, naming the option, for one that belongs to a search of a model's
/// layouts.
int search_space_by_moves(const cxxopts::ParseResult& parsed, Zygote& zygote);

}  // namespace manyworlds::farm::commands
