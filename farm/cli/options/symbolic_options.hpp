// The options of a search that reads no hardware.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/sweep/experiment.hpp"
#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

/// --symbolic, --gpus-per-node, --flops-per-byte, --flops-per-memory-byte, --flops-per-us and --node-factor.
void add_symbolic_options(cxxopts::Options& options);

/// Returns the GPUs of a node if --symbolic is given; nothing otherwise. Throws core::InputError for options that name
/// hardware or ask for a simulation beside it, and for those of its order without it.
std::optional<std::int64_t> symbolic_node(const cxxopts::ParseResult& parsed);

/// Returns the first `k` layouts of the order, as text or, with --json, as JSON.
std::string symbolic_answer(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep, std::int64_t k);

}  // namespace manyworlds::farm::commands
