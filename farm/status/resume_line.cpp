#include "farm/status/resume_line.hpp"

#include <vector>

#include "core/base/escape.hpp"

namespace manyworlds::farm {

std::string resume_line(const std::filesystem::path& directory, const std::string& store) {
  // -j is left out: the next life may have another machine.
  std::vector<std::string> words{"manyworlds", "resume", core::as_operand(directory.string())};
  if (!store.empty()) words.insert(words.end(), {"--store", core::as_operand(store)});
  return core::shell_line(words);
}

}  // namespace manyworlds::farm
