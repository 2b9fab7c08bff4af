// Which value a document lacks, and the message that asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// What an experiment is read for: whole training steps, or the network alone.
enum class Scope : std::uint8_t { step, network };

/// Returns the first required value that is missing, as its key and a message that asks for it; empty if there is none.
std::pair<std::string, std::string> missing_required(const Settings& settings, Scope scope = Scope::step);

}  // namespace manyworlds::experiments
