// Times of a layer's operations as AICB's AIOB measures them on one GPU (aliyun/aicb, workload_generator/mocked_model
// and utils/utils.py, process_all_keys()): forward alone, in microseconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compute/measured.hpp"

namespace manyworlds::experiments::import {

struct AiobTime {
  std::string operation;                                                 // as AIOB calls it
  core::compute::CostLevel level = core::compute::CostLevel::submodule;  // or layer
  std::vector<std::string_view> names;  // of that submodule or layer in tables; one of them, by the model. Empty: none
  double us = 0;                        // time_gpu_avg
  int line = 0;
};

/// Parses a file of AIOB; `name` is its name in messages. Throws InputError with the line for what is none, for a time
/// that is missing or not above 0, and for an operation that is unknown or there twice.
std::vector<AiobTime> parse_aiob(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
