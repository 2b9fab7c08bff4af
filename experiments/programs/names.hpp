// Numbers of texts, by first occurrence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace manyworlds::experiments::programs {

/// Numbers the names of operations into StreamPrograms::names, which must outlive this and is changed by nothing else.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {
    for (const std::string& name : names) numbers_.emplace(name, static_cast<std::uint32_t>(numbers_.size()));
  }
  std::uint32_t operator()(const std::string& name) {
    const auto [known, is_new] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return known->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace manyworlds::experiments::programs
