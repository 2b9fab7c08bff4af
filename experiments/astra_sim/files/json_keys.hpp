// One of ASTRA-sim's JSON files, key by key: every key is one that is known, and has a value that is right.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::astra_sim {

/// Every function throws InputError as `FILE: KEY: what would be right`.
class JsonKeys {
 public:
  JsonKeys(std::string_view text, std::string name);

  /// Throws unless all keys are of `known`; `what` is the file in messages.
  void check(const std::vector<std::string>& known, const char* what) const;

  bool has(const char* key) const { return document_.contains(key); }
  std::int64_t whole(const char* key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  double number(const char* key, double otherwise, double most) const;
  /// 0 or 1, as ASTRA-sim's switches are.
  bool flag(const char* key) const;
  /// Whether the value is true or false.
  bool is_truth(const char* key) const { return has(key) && document_.at(key).is_boolean(); }
  std::optional<std::string> text(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  [[noreturn]] void fail(const char* key, const std::string& right) const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  nlohmann::json document_;
};

}  // namespace manyworlds::experiments::astra_sim
