// Models with a teacher, for the tests of workload, memory and steps.
#pragma once

#include <memory>

#include "core/workload/model/distillation.hpp"

namespace manyworlds::core::workload {

/// Returns the student with a teacher of these sizes.
inline Model taught_by(Model student, const Model& sizes, DistillationLoss loss = DistillationLoss::kl) {
  auto teacher = std::make_shared<Teacher>();
  static_cast<Model&>(*teacher) = sizes;
  teacher->sequence = student.sequence;
  teacher->frozen = true, teacher->dropout = false;
  teacher->loss = loss;
  student.teacher = std::move(teacher);
  return student;
}

}  // namespace manyworlds::core::workload
