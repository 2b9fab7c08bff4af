// YAML into a plain tree that remembers file and line of every node. Refuses what cannot be meant: repeated keys,
// deep nesting, alias bombs, huge files and bytes that are no text.
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
  bool quoted = false;         // of a scalar: "8" is text, 8 a number
  std::string text;            // of a scalar
  std::vector<Node> items;     // of a sequence
  std::vector<Entry> entries;  // of a mapping, in the order of the file
  std::shared_ptr<const std::string> file;
  int line = 0;

  const Node* find(std::string_view key) const;
  /// Ends in an InputError that names this node's file and line.
  [[noreturn]] void fail(const std::string& what) const;
};

struct Entry {
  std::string key;
  int line = 0;
  Node value;
};

/// "a mapping", "a list", "text 'x'", …: what a node is, for messages.
std::string describe(const Node& node);

/// The one document of `text`, which needs at most 500 MB. `name` stands for the file in messages. Throws InputError.
Node parse_yaml(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
