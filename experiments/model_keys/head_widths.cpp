#include "experiments/model_keys/head_widths.hpp"

#include <fmt/format.h>

namespace manyworlds::experiments::models {

SaidSize said_size(ConfigReader& reader, std::string_view option, Keys keys) {
  return {reader.find(keys), reader.setting(option)};
}

void check_head_width(const ConfigReader& reader, const SaidSize& width, const SaidSize& heads, std::string_view hint) {
  if (heads.value > 0 && width.value % heads.value == 0) return;
  reader.fail(width.at, fmt::format("'{}' is {}, no multiple of '{}', {}{}", width.at.key, width.value, heads.at.key,
                                    heads.value, hint));
}

void check_key_heads(const ConfigReader& reader, const SaidSize& key_heads, const SaidSize& heads) {
  if (key_heads.value > 0 && heads.value % key_heads.value == 0) return;
  reader.fail(key_heads.at, fmt::format("'{}' is {}, which does not divide '{}', {}", key_heads.at.key, key_heads.value,
                                        heads.at.key, heads.value));
}

}  // namespace manyworlds::experiments::models
