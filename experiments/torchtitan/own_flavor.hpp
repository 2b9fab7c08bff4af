// A model that torchtitan has no flavor of, as the entry of its registry that one would add: torchtitan v0.2.2,
// torchtitan/models/{llama3,qwen3,deepseek_v3}/__init__.py and model/args.py. It stands in comments of a job's TOML,
// where it is read again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/torchtitan/flavors.hpp"

namespace manyworlds::experiments::jobs::torchtitan {

/// Returns a flavor of one of torchtitan's models with these sizes, without sequence, and what is `carried` of the
/// model as far as its arguments say it; nothing if no arguments of such a model say the sizes.
std::optional<Flavor> own_flavor(const core::workload::Model& sizes, const std::string& carried,
                                 const std::string& name);

/// Returns the comments that tell what to add, and where.
std::string own_flavor_text(const Flavor& flavor);

/// Returns the flavors in the comments of a job's file. Throws InputError for arguments that are not known.
std::vector<Flavor> own_flavors_in(const std::string& text, const std::string& file);

}  // namespace manyworlds::experiments::jobs::torchtitan
