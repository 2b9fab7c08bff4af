// The adapter_config.json that Hugging Face's PEFT writes: pairs of low rank beside a model that it names.
#pragma once

#include <string>

#include "experiments/jobs/low_rank_pairs.hpp"
#include "experiments/jobs/named_model.hpp"

namespace manyworlds::experiments::jobs {

struct AdapterConfig {
  ModelName base;  // a config.json beside it, or the name or path that it has
  LowRankPairs pairs;
};

/// Returns whether a path is that of an adapter's file.
bool is_adapter_config(const std::string& path);

/// Reads an adapter's file, and adds to the job what is noted of it. Throws InputError with file, line and key for what
/// is not known or not modelled.
AdapterConfig read_adapter_config(const std::string& path, Job& job);

}  // namespace manyworlds::experiments::jobs
