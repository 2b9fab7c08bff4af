// The fabric in a cluster file: its section `fabric`, with names instead of numbers. docs/formats.md describes it.
#pragma once

#include <string>
#include <string_view>

#include "experiments/clusters/fabric.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::clusters {

/// Returns the section `fabric` of a cluster file. The same fabric gives the same bytes.
std::string fabric_yaml(const Fabric& fabric);

/// Reads that section. Throws InputError, with file and line, for what it cannot mean: an unknown switch, a rate that
/// is no rate, a name twice.
Fabric read_fabric(const import::Node& section);

/// Returns whether a text is YAML with such a section, and not a topology of SimAI.
bool has_fabric(std::string_view text);

/// Parses a cluster file and returns its fabric; `name` is the file name in messages.
Fabric parse_fabric_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::clusters
