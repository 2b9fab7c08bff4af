#include "experiments/model_keys/activations.hpp"

#include <map>

namespace manyworlds::experiments::models {

std::optional<Function> function_named(std::string_view name) {
  static const std::map<std::string_view, Function> all{
      {"silu", Function::silu},
      {"swish", Function::silu},
      {"gelu", Function::gelu},
      {"gelu_10", Function::gelu},
      {"gelu_accurate", Function::gelu},
      {"gelu_fast", Function::gelu},
      {"gelu_new", Function::gelu},
      {"gelu_python", Function::gelu},
      {"gelu_python_tanh", Function::gelu},
      {"gelu_pytorch_tanh", Function::gelu},
      {"quick_gelu", Function::gelu},
      {"relu", Function::relu},
      {"relu2", Function::squared_relu},
      {"relu_squared", Function::squared_relu},
      {"squared_relu", Function::squared_relu},
      {"xielu", Function::xielu},
      {"laplace", Function::other},
      {"leaky_relu", Function::other},
      {"linear", Function::other},
      {"mish", Function::other},
      {"prelu", Function::other},
      {"relu6", Function::other},
      {"sigmoid", Function::other},
      {"tanh", Function::other},
  };
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

bool is_of_networks(std::optional<Function> function) {
  return function && *function != Function::other;
}

}  // namespace manyworlds::experiments::models
