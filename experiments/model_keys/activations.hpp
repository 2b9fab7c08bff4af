// Functions that configurations name as activations: one table for all families.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::experiments::models {

/// What a name stands for. `other` is a function of the transformers library that no feed-forward network here has.
enum class Function : std::uint8_t { silu, gelu, relu, squared_relu, xielu, other };

/// Returns the function of a name that the transformers library knows (activations.py, ACT2FN, of version 5.0), or
/// code beside published weights; nothing if it is none.
std::optional<Function> function_named(std::string_view name);

/// Returns whether a feed-forward network can have the function.
bool is_of_networks(std::optional<Function> function);

}  // namespace manyworlds::experiments::models
