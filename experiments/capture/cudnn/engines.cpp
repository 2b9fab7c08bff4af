#include "experiments/capture/cudnn/engines.hpp"

#include <cstring>

namespace manyworlds::experiments::capture::cudnn {
namespace {

template <typename T>
Value scalar(ValueType type, T of) {
  Value value{static_cast<int>(type), 1, std::vector<std::byte>(sizeof of), {}};
  std::memcpy(value.elements.data(), &of, sizeof of);
  return value;
}

Value of_descriptors(std::shared_ptr<const Descriptor> one) {
  return {static_cast<int>(ValueType::descriptor), 1, {}, {std::move(one)}};
}

/// The one configuration of the one engine of a graph.
std::shared_ptr<const Descriptor> configuration(const Value& graph) {
  auto engine = std::make_shared<Descriptor>(Descriptor{kind_of(kind::kEngine), true, {}, -1});
  engine->values[attribute::kEngineGraph] = graph;
  engine->values[attribute::kEngineIndex] = scalar<std::int64_t>(ValueType::int64, 0);
  auto config = std::make_shared<Descriptor>(Descriptor{kind_of(kind::kEngineConfig), true, {}, -1});
  config->values[attribute::kConfigEngine] = of_descriptors(std::move(engine));
  return config;
}

}  // namespace

std::optional<Value> answered(const Descriptor& of, int attribute) {
  switch (attribute) {
    case attribute::kHeuristicResults:
      return of_descriptors(configuration(of.values.at(attribute::kHeuristicGraph)));
    case attribute::kGraphEngineCount:
      return scalar<std::int64_t>(ValueType::int64, 1);
    case attribute::kConfigWorkspace:
    case attribute::kPlanWorkspace:
      return scalar<std::int64_t>(ValueType::int64, 0);
    case attribute::kConfigSharedMemory:
      return scalar<std::int32_t>(ValueType::int32, 0);
    default:
      return std::nullopt;
  }
}

const Descriptor* graph_of_plan(const Descriptor& plan) {
  if (plan.kind->number != kind::kExecutionPlan || !plan.is_final) return nullptr;
  const Descriptor* engine = plan.descriptor(attribute::kPlanConfig)->descriptor(attribute::kConfigEngine);
  return engine->descriptor(attribute::kEngineGraph);
}

}  // namespace manyworlds::experiments::capture::cudnn
