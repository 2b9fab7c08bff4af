// What the names in files of NeMo mean: variables of MLPerf's configurations and keys of YAML.
#pragma once

#include "experiments/megatron/dialect.hpp"

namespace manyworlds::experiments::jobs {

/// Variables of the config_*.sh of NVIDIA's and AMD's entries of MLPerf Training.
const Dialect& mlperf_dialect();
/// Keys of NeMo's YAML, of its first and second version, and of Megatron-Bridge.
const Dialect& nemo_dialect();

/// Keys of NeMo Automodel, which is no Megatron-LM.
const KnownNames& automodel_keys();

}  // namespace manyworlds::experiments::jobs
