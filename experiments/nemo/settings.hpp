// What the names in files of NeMo mean: variables of MLPerf's configurations and keys of YAML.
#pragma once

#include <string>
#include <vector>

#include "experiments/megatron/dialect.hpp"

namespace manyworlds::experiments::jobs {

/// Variables of the config_*.sh of NVIDIA's and AMD's entries of MLPerf Training.
const Dialect& mlperf_dialect();
/// Keys of NeMo's YAML, of its first and second version, and of Megatron-Bridge.
const Dialect& nemo_dialect();

/// A key of NeMo Automodel, which is no Megatron-LM.
struct AutomodelKey {
  std::string name;
  std::string keys;    // the settings
  std::string values;  // "a=b c=d": words; otherwise how it is read
};
const std::vector<AutomodelKey>& automodel_keys();
const std::vector<ArgumentGroup>& other_automodel_keys();

}  // namespace manyworlds::experiments::jobs
