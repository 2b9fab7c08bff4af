// The option table of a software stack.
#include "core/workload/stack.hpp"

namespace manyworlds::core::workload {

const OptionTable<Stack>& stack_options() {
  static const OptionTable<Stack> table{};
  return table;
}

}  // namespace manyworlds::core::workload
