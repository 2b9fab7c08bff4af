// The parts of a model, as rules visit them.
#pragma once

#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/parts/registry.hpp"
#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

/// Calls `visit` with every part of the model until it returns a violation.
template <class Visitor>
Violation first_of_parts(const core::workload::Model& model, Visitor&& visit) {
  Violation found;
  for (const core::workload::LayerKind kind : core::workload::layer_kinds(model))
    core::workload::for_each_branch(model, kind, [&](const core::workload::LayerBranch& branch) {
      if (!found) found = visit(branch);
    });
  return found;
}

}  // namespace manyworlds::experiments
