#include "experiments/capture/kernel_arguments.hpp"

#include <cxxabi.h>

#include <cstdlib>

namespace manyworlds::experiments::capture {
namespace {

/// Where the parameter list opens: the parenthesis that the last one closes.
std::size_t opening(std::string_view readable) {
  int depth = 0;
  for (std::size_t i = readable.size(); i-- > 0;) {
    if (readable[i] == ')') ++depth;
    if (readable[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

std::vector<std::string> at_commas(std::string_view list) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : list) {
    if (c == '(' || c == '<' || c == '[') ++depth;
    if (c == ')' || c == '>' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

Parameter parameter(const std::string& type) {
  static constexpr struct {
    std::string_view type;
    ArgumentForm form;
    int bytes;
  } kScalars[] = {{"float", ArgumentForm::float32, 4},
                  {"double", ArgumentForm::float64, 8},
                  {"bool", ArgumentForm::boolean, 1},
                  {"char", ArgumentForm::signed_integer, 1},
                  {"signed char", ArgumentForm::signed_integer, 1},
                  {"unsigned char", ArgumentForm::unsigned_integer, 1},
                  {"short", ArgumentForm::signed_integer, 2},
                  {"unsigned short", ArgumentForm::unsigned_integer, 2},
                  {"int", ArgumentForm::signed_integer, 4},
                  {"unsigned int", ArgumentForm::unsigned_integer, 4},
                  {"long", ArgumentForm::signed_integer, 8},
                  {"unsigned long", ArgumentForm::unsigned_integer, 8},
                  {"long long", ArgumentForm::signed_integer, 8},
                  {"unsigned long long", ArgumentForm::unsigned_integer, 8}};
  for (const auto& each : kScalars)
    if (type == each.type) return {type, each.form, each.bytes};
  const bool is_pointer = type.ends_with('*') || type.ends_with("* const") || type.ends_with('&');
  return is_pointer ? Parameter{type, ArgumentForm::pointer, 8} : Parameter{type, ArgumentForm::unread, 0};
}

}  // namespace

std::string demangled(const char* mangled) {
  int status = 0;
  char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  const std::string name = status == 0 ? readable : mangled;
  std::free(readable);
  return name;
}

std::vector<Parameter> parameters(std::string_view readable, bool& known) {
  std::vector<Parameter> list;
  const std::size_t open = readable.ends_with(')') ? opening(readable) : std::string_view::npos;
  known = open != std::string_view::npos;
  if (known)
    for (const std::string& type : at_commas(readable.substr(open + 1, readable.size() - open - 2)))
      list.push_back(parameter(type));
  return list;
}

}  // namespace manyworlds::experiments::capture
