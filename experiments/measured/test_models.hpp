// Models of Megatron-LM's functional tests that are no decoders, as the scripts of these tests build them (NVIDIA/
// Megatron-LM @d98e8a6, tests/functional_tests/test_cases/*/model_config.yaml, pretrain_t5.py, pretrain_bert.py,
// pretrain_mamba.py, pretrain_vlm.py and their defaults).
#pragma once

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/stack.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Describes the model of a row's test in `model`, which has the sizes that the row gives. Returns false, and changes
/// nothing, if the test's model is not known.
bool describe_test_model(core::workload::Model& model, const import::CsvRow& row);

/// Leaves out the kernels that Transformer Engine does not run for such heads and sequences: fused attention takes
/// widths of heads that are multiples of 8, its fused softmax such numbers of keys
/// (pytorch/attention/dot_product_attention, utils.py; pytorch/softmax.py, is_kernel_available()).
void restrict_kernels(core::workload::Stack& stack, const core::workload::Model& model);

}  // namespace manyworlds::experiments::measured
