// The XML that NCCL and MSCCL write: elements with attributes, and comments; text between elements is ignored.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace manyworlds::experiments::import {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string, std::less<>> attributes;
  int line = 0;
  /// Returns an attribute; empty if the element has none of that name.
  std::string_view value(std::string_view attribute) const;
};

/// Calls `begin` where an element begins and `end` where it ends. Throws InputError, with the line, for a text that is
/// not well-formed or nests deeper than 64 levels; `name` is the file name in messages.
void walk_xml(std::string_view text, const std::string& name, const std::function<void(const XmlElement&)>& begin,
              const std::function<void()>& end);

}  // namespace manyworlds::experiments::import
