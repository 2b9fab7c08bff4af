// What of a model changes neither time nor memory of a step, and yet is the model: bases of rotations, epsilons of
// norms, scales, initial values. It is carried beside the settings, as arguments of Megatron-LM, into what an
// experiment is launched with. The text of the key model.carried is "rotary-base=500000 add-qkv-bias
// mrope-section=16+24+24".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::models {

struct CarriedArgument {
  std::string name;  // of Megatron-LM's argument, without its dashes
  std::vector<std::string> values;
  bool operator==(const CarriedArgument&) const = default;
};

constexpr const char* kCarriedKey = "model.carried";

/// Returns the arguments in a text of model.carried, each name once: the last counts.
std::vector<CarriedArgument> carried_in(std::string_view text);
/// Returns their text, in the order of their names; the inverse of carried_in().
std::string carried_text(std::vector<CarriedArgument> arguments);
/// Returns whether a value can stand in such a text: letters, digits, and ._-/ alone; + in exponents of numbers.
bool is_carried_value(std::string_view value);

/// Adds the arguments of `over` to those of `text`, in whose place they come; returns the text.
std::string carried_over(std::string_view text, std::string_view over);

}  // namespace manyworlds::experiments::models
