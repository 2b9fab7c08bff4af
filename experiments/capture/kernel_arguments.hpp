// What can be read of a kernel's arguments at its launch: their types stand in its name, as C++ mangles it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::capture {

/// How an argument's bytes are read. Those of types whose layout the name does not tell (structures passed by value,
/// enumerations, dependent types) are not.
enum class ArgumentForm { pointer, float32, float64, boolean, signed_integer, unsigned_integer, unread };

struct Parameter {
  std::string type;
  ArgumentForm form = ArgumentForm::unread;
  int bytes = 0;
};

/// The readable name of a mangled one; the name itself if it is not mangled.
std::string demangled(const char* mangled);

/// The parameters in a readable name, "void scale<float>(float*, int)". `known` is false if there is no list, as for
/// kernels with C linkage.
std::vector<Parameter> parameters(std::string_view readable, bool& known);

}  // namespace manyworlds::experiments::capture
