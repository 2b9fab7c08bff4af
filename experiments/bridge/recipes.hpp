// Recipes of Megatron-Bridge that fine-tune with pairs of low rank, by what their functions set.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manyworlds::experiments::jobs {

struct BridgeRecipe {
  std::string_view name, long_name;
  std::string_view model;         // of the catalog
  std::string_view rank;          // peft.dim
  std::string_view modules = {};  // peft.target_modules; empty: all linear layers
  std::string_view fields = {};   // of its own, "field=value" with blanks between
};

/// Returns the recipe of a name, short or long; null if it is none of these.
const BridgeRecipe* find_recipe(const std::string& name);

/// Returns the names of all, for messages.
std::string recipe_names();

/// Returns the fields that a recipe sets and the vanilla one does not, each with its value.
std::vector<std::pair<std::string, std::string>> recipe_fields(const BridgeRecipe& recipe);

}  // namespace manyworlds::experiments::jobs
