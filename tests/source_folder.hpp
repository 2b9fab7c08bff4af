// Where the sources are that tests read examples from. Only one file of a test program is compiled for its place on
// disk: the others are found compiled already in another checkout.
#pragma once

#include <string>

namespace manyworlds {

/// Returns the path of the folder with CMakeLists.txt, without a slash at its end.
std::string source_folder();

}  // namespace manyworlds
