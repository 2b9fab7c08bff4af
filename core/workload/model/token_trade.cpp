#include "core/workload/model/token_trade.hpp"

#include "core/workload/model/architecture.hpp"

namespace manyworlds::core::workload {

bool exchanges_tokens(const Model& model) {
  if (!model.architecture) return false;
  for (const Block& block : model.architecture->blocks)
    for (const Branch& branch : block.branches)
      if (dynamic_cast<const TradesTokens*>(branch.part.get()) != nullptr ||
          dynamic_cast<const GathersTokens*>(branch.part.get()) != nullptr)
        return true;
  return false;
}

}  // namespace manyworlds::core::workload
