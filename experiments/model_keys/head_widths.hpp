// Whether heads divide a width, and heads of keys and values those of queries: one check for all families.
#pragma once

#include <string_view>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// A size and the key that says it.
struct SaidSize {
  FoundKey at;
  std::int64_t value = 0;
};

/// Returns the value of an option that was set from one of these keys.
SaidSize said_size(ConfigReader& reader, std::string_view option, Keys keys);

/// Throws an InputError at `width` unless it is a multiple of `heads`. `hint` says how else a head's width is given.
void check_head_width(const ConfigReader& reader, const SaidSize& width, const SaidSize& heads,
                      std::string_view hint = {});
/// Throws an InputError at `key_heads` unless there is at least one and they divide `heads`.
void check_key_heads(const ConfigReader& reader, const SaidSize& key_heads, const SaidSize& heads);

}  // namespace manyworlds::experiments::models
