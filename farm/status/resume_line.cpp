#include "farm/status/resume_line.hpp"

#include <vector>

#include "core/base/escape.hpp"

namespace manyworlds::farm {

std::string resume_line(const std::filesystem::path& directory, const std::string& store) {
  // -j is left out, because the next incarnation may run on another machine.
  std::vector<std::string> arguments{"manyworlds", "resume", core::as_operand(directory.string())};
  if (!store.empty()) arguments.insert(arguments.end(), {"--store", core::as_operand(store)});
  return core::shell_line(arguments);
}

}  // namespace manyworlds::farm
