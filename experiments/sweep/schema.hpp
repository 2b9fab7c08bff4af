// What the program offers, for editors and for `manyworlds list`, all of it from option tables and registries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/catalog/catalog.hpp"

namespace manyworlds::experiments {

/// Returns the JSON Schema (draft 2020-12) of a sweep.
std::string json_schema(const Catalog& catalog);

/// One row of a list: a name, one line of help, and values or options as (name, text).
struct ListEntry {
  std::string name;
  std::string help;
  std::vector<std::pair<std::string, std::string>> details;
};

/// Returns the catalog entries of a kind as a table, titles first, without sources; empty if `kind` is not in the
/// catalog.
std::vector<std::vector<std::string>> list_table(const std::string& kind, const Catalog& catalog);

/// Returns the kinds that can be listed: gpus, models, clusters, stacks, topologies, …, rules.
const std::vector<std::string>& listings();

/// Returns the rows of a kind. Throws InputError, with the nearest name, if `kind` is not one of listings().
std::vector<ListEntry> list(const std::string& kind, const Catalog& catalog);

}  // namespace manyworlds::experiments
