// The list of verbs: one line each, in the order of the help text. A new verb is a new file in one of the rooms
// beside this one and a line below.
#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

// clang-format off
#define MANYWORLDS_VERBS(entry) \
  entry(sweep)                  \
  entry(resume)                 \
  entry(merge)                  \
  entry(run)                    \
  entry(check)                  \
  entry(net)                    \
  entry(stragglers)             \
  entry(status)                 \
  entry(serve)                  \
  entry(top)                    \
  entry(compare)                \
  entry(explain)                \
  entry(search)                 \
  entry(allocate)               \
  entry(ramp)                   \
  entry(design)                 \
  entry(phases)                 \
  entry(report)                 \
  entry(export)                 \
  entry(diff)                   \
  entry(store)                  \
  entry(validate)               \
  entry(calibrate)              \
  entry(cluster)                \
  entry(slurm)                  \
  entry(model)                  \
  entry(capture)                \
  entry(program)                \
  entry(doctor)                 \
  entry(list)                   \
  entry(schema)                 \
  entry(completion)             \
  entry(man)
// clang-format on

#define MANYWORLDS_DECLARE(name) Command name##_command();
MANYWORLDS_VERBS(MANYWORLDS_DECLARE)

const std::vector<Command>& registry() {
#define MANYWORLDS_CALL(name) name##_command(),
  static const std::vector<Command> commands{MANYWORLDS_VERBS(MANYWORLDS_CALL)};
  return commands;
}

}  // namespace manyworlds::farm::commands
