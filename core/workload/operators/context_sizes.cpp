#include "core/workload/operators/context_sizes.hpp"

#include <fmt/format.h>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

std::string undivided_tokens(const char* name, std::int64_t tokens, const Strategy& strategy) {
  const std::int64_t ranks = strategy.cp * (strategy.sequence_parallel ? strategy.tp : 1);
  if (tokens % ranks == 0) return "";
  return fmt::format("{} {}, cp x tp {}", name, tokens, ranks);
}

std::string undivided_heads(const Model& model, const Strategy& strategy) {
  const std::int64_t ranks = strategy.cp * strategy.tp;
  if (strategy.cp_comm != ContextExchange::ulysses || model.kv() % ranks == 0) return "";
  return fmt::format("heads {}, kv_heads {}, tp x cp {}", model.heads, model.kv(), ranks);
}

}  // namespace manyworlds::core::workload
