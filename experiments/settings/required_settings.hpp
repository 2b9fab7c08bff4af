// What a document must say itself: options without a default, which the catalog or the user gives.
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

/// Returns whether `settings` lacks nothing since `complete` lacks nothing: they differ in their strategy alone, and
/// that is whole. False means that this is not known.
bool lacks_no_more(const Settings& settings, const Settings& complete);

}  // namespace manyworlds::experiments
