// Hints for names that the catalog does not have: names of models on Hugging Face's hub, and of GPUs as nvidia-smi and
// rocm-smi print them.
#pragma once

#include <string>

#include "experiments/catalog/catalog.hpp"

namespace manyworlds::experiments {

/// Returns a name as people and tools agree on it: H100 is h100, and `NVIDIA A100-SXM4-80GB` nvidia_a100_sxm4_80gb.
std::string plain_name(const std::string& name);

/// Returns what a message says behind an unknown name of a kind ("models", "gpus", …): the entries that may be meant,
/// otherwise where the known ones are listed.
std::string unknown_name_hint(const std::string& kind, const std::string& name, const Catalog::Entries& known);

}  // namespace manyworlds::experiments
