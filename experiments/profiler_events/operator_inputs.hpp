// What another file than a trace says of the inputs of operators.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace manyworlds::experiments::profiler {

/// Inputs of operators, by the number that PyTorch gave each call (its record function id), as members of the arguments
/// that a trace with shapes has.
class OperatorInputs {
 public:
  struct Operator {
    std::string name, inputs;
    bool operator==(const Operator&) const = default;
  };

  void add(std::int64_t function, const std::string& name, const std::string& inputs);
  /// Returns the operator of a call; null if there is none.
  const Operator* find(std::int64_t function) const;
  std::size_t calls() const { return number_of_function_.size(); }

 private:
  std::vector<Operator> operators_;                                // distinct ones
  std::unordered_map<std::string, std::uint32_t> number_of_text_;  // by name and inputs
  std::unordered_map<std::int64_t, std::uint32_t> number_of_function_;
};

}  // namespace manyworlds::experiments::profiler
