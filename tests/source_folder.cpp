#include "tests/source_folder.hpp"

namespace manyworlds {

std::string source_folder() {
  return MANYWORLDS_SOURCE_DIR;
}

}  // namespace manyworlds
