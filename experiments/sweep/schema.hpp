// What the program knows, for editors and for `manyworlds list`; all of it from tables and registries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/settings/catalog.hpp"

namespace manyworlds::experiments {

/// JSON Schema (draft 2020-12) of a sweep.
std::string json_schema(const Catalog& catalog);

/// One row of a list: a name, a line about it, and its figures or options as (name, text).
struct Listed {
  std::string name;
  std::string help;
  std::vector<std::pair<std::string, std::string>> details;
};

/// The entries of a kind of the catalog side by side, titles first, without sources; empty for what is no kind of it.
std::vector<std::vector<std::string>> list_table(const std::string& kind, const Catalog& catalog);

/// What can be listed: gpus, models, clusters, topologies, collectives, schedules, transports.
const std::vector<std::string>& listings();

/// Throws InputError, with the nearest name, for a kind that is none of listings().
std::vector<Listed> list(const std::string& kind, const Catalog& catalog);

}  // namespace manyworlds::experiments
