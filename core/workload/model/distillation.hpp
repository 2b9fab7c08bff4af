// Distillation (Hinton, Vinyals and Dean 2015): a step in which a frozen model, the teacher, runs its forward pass on
// the same tokens, and the model that is trained, the student, learns its output distribution.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

/// The student's loss: the Kullback-Leibler divergence of both distributions, alone or beside the usual cross entropy
/// (ModelOpt's skip_lm_loss true, which is its default, or false).
enum class DistillationLoss : std::uint8_t { kl, kl_and_cross_entropy };

/// Every Model::teacher is one. It has no dropout, as it is evaluated, and `frozen` is set.
struct Teacher : Model {
  DistillationLoss loss = DistillationLoss::kl;
};

/// Options that a teacher has beside those of a model.
const OptionTable<Teacher>& teacher_options();

/// Returns the teacher of a model that has one.
inline const Teacher& teacher_of(const Model& model) {
  return static_cast<const Teacher&>(*model.teacher);
}

/// Whether the student's loss has a cross entropy: there is no teacher, or it is asked for.
inline bool has_cross_entropy(const Model& model) {
  return !model.teacher || teacher_of(model).loss == DistillationLoss::kl_and_cross_entropy;
}

}  // namespace manyworlds::core::workload
