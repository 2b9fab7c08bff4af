// Models of the catalog, made as a sweep makes them.
#pragma once

#include <string>

#include "experiments/catalog/catalog.hpp"
#include "experiments/key_contents/architecture.hpp"

namespace manyworlds::experiments::testing {

inline core::workload::Model catalog_model(const Catalog& catalog, const std::string& name) {
  core::OptionSet values;
  for (const auto& [key, sourced] : catalog.entries("models").at(name).values)
    if (key != "carried") values.insert({key, sourced.value});
  core::workload::Model model = core::workload::model_options().make(values);
  model.architecture = architecture_of(model);
  return model;
}

}  // namespace manyworlds::experiments::testing
