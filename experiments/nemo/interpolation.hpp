// Values of YAML that stand for others: ${path} as OmegaConf reads it, and ${NAME:default} of the environment.
#pragma once

#include <map>
#include <string>

#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::jobs {

/// Returns a scalar with what it stands for: ${a.b} from the root, ${.b} beside it, ${multiply:…}, ${divide:…},
/// ${add:…}, ${oc.env:NAME,default} and ${oc.decode:…}. `path` is the value's own, joined by dots. What cannot be told
/// is a mark of shell::unknown() with the reason. Throws InputError for references that lead to themselves.
std::string interpolated(const import::Node& root, const std::string& path, const import::Node& value,
                         const std::map<std::string, std::string>& environment);

}  // namespace manyworlds::experiments::jobs
