// Values of catalog entries, as a search asks for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "experiments/catalog/catalog.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::farm {

/// Returns a place that messages name by a word, such as an option.
inline experiments::import::Node source_node(const std::string& word) {
  experiments::import::Node at;
  at.file = std::make_shared<const std::string>(word);
  return at;
}

/// Returns a text of an entry; empty if it has none.
inline std::string text_value(const experiments::CatalogEntry& entry, const std::string& name) {
  const auto found = entry.values.find(name);
  return found == entry.values.end() ? "" : std::get<std::string>(found->second.value);
}

inline std::int64_t integer_value(const experiments::CatalogEntry& entry, const std::string& name,
                                  std::int64_t default_value) {
  const auto found = entry.values.find(name);
  return found == entry.values.end() ? default_value : std::get<std::int64_t>(found->second.value);
}

}  // namespace manyworlds::farm
