#include "farm/plan/footprints.hpp"

#include <fmt/format.h>

#include "core/compute/gpu.hpp"
#include "core/workload/distributions/documents.hpp"
#include "core/workload/schedule/written_schedule.hpp"

namespace manyworlds::farm {
namespace {

template <class T>
void append(std::string& to, const core::OptionTable<T>& table, const T& from) {
  for (const auto& row : table.rows())
    std::visit([&to](const auto& value) { to += fmt::format("{} ", value); }, row.get(from));
}

}  // namespace

core::step::MemoryRequirement Footprints::requirement_of(const core::step::Configuration& configuration) {
  if (configuration.is_mixed() || configuration.programs) return memory_requirement_of(configuration);
  const core::workload::Strategy& strategy = configuration.strategy;
  std::string key = fmt::format("{} ", strategy.dp);
  append(key, core::workload::model_options(), configuration.model);
  append(key, core::workload::strategy_options(), strategy);
  append(key, core::workload::stack_options(), strategy.stack);
  append(key, core::compute::gpu_options(), configuration.gpu);
  if (configuration.model.routing) key += configuration.model.routing->key.hex();
  if (configuration.model.documents) key += configuration.model.documents->key.hex();
  if (strategy.written) key += core::workload::key_of(*strategy.written).hex();
  const auto [known, is_new] = known_.try_emplace(std::move(key));
  if (is_new) known->second = core::memory::peak(configuration.model, strategy, configuration.gpu);
  return {known->second, core::step::usable_memory_gib(configuration, configuration.gpu)};
}

}  // namespace manyworlds::farm
