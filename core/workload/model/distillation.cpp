#include "core/workload/model/distillation.hpp"

namespace manyworlds::core::workload {

const OptionTable<Teacher>& teacher_options() {
  static const OptionTable<Teacher> table{
      choice("loss", &Teacher::loss, {"kl", "kl_and_cross_entropy"},
             "what the student learns from: the divergence of its output distribution from the teacher's, or the cross "
             "entropy of the next token as well"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
