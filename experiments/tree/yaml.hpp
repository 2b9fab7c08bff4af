// Parses YAML into a plain tree whose nodes know their file and line. Refuses documents that cannot be intended:
// repeated keys, deep nesting, alias bombs, huge files and bytes that are not text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {

struct Entry;

struct Node {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  bool quoted = false;         // whether a scalar is quoted: "8" is text, 8 is a number
  std::string text;            // value of a scalar
  std::vector<Node> items;     // items of a sequence
  std::vector<Entry> entries;  // entries of a mapping, in the order of the file
  std::shared_ptr<const std::string> file;
  int line = 0;

  const Node* find(std::string_view key) const;
  /// Throws an InputError with this node's file and line.
  [[noreturn]] void fail(const std::string& what) const;
};

struct Entry {
  std::string key;
  int line = 0;
  Node value;
};

/// Throws InputError unless the node is a mapping that has no other keys than these; `what` is it in messages, at the
/// beginning of a sentence.
void check_keys(const Node& node, const std::vector<std::string>& known, const char* what);

/// Describes a node for messages: "nothing", "a mapping", "a list", "'x'", ….
std::string describe(const Node& node);

/// Returns a node on one line, as --set takes it: parse_yaml() reads it back as the same tree, but for lines, and for
/// quotes around text that needs them.
std::string flow_text(const Node& node);

/// Parses the only document in `text` with at most 500 MB of memory; `name` is the file name in messages. Throws
/// InputError.
Node parse_yaml(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
