// Builds the tree from yaml-cpp's events, so that aliases are counted before they are expanded.
#include "experiments/tree/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_set>

#include "core/base/escape.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxKeys = 10'000;        // per mapping
constexpr std::size_t kMaxNodes = 500'000;      // with aliases expanded, plus the copies kept for anchors
constexpr std::size_t kTextBytesPerNode = 100;  // length of a text beyond which it counts as several nodes
// yaml-cpp keeps the tokens inside brackets, about 300 bytes each, until the outermost bracket is closed.
constexpr std::size_t kMaxIndicators = 1'000'000;
constexpr std::string_view kIndicators = ",[]{}?:&*!'\"";

/// A collection that is not closed yet. A mapping waits for a key, then for its value.
struct OpenNode {
  Node node;
  YAML::anchor_t anchor = YAML::NullAnchor;
  std::unordered_set<std::string> keys;  // of this mapping, so far
  bool has_key = false;
  std::string key;
  int key_line = 0;
};

/// The value of an anchor, which its aliases copy.
struct Anchored {
  Node node;
  std::size_t nodes = 0, depth = 0;
};

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) make_node(Node::Kind::null, mark).fail("a second document begins here; a file holds one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_node(make_node(Node::Kind::null, mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make_node(Node::Kind::scalar, mark);
    check_tag(node, tag);
    check_text(value, *file_);
    node.quoted = tag == "!";
    if (!node.quoted && (value == "~" || value == "null" || value.empty())) node.kind = Node::Kind::null;
    node.text = value;
    add_node(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    const Node here = make_node(Node::Kind::null, mark);
    if (known == anchors_.end()) here.fail("an alias stands inside what it refers to; write the value out");
    if (open_.size() + known->second.depth > kMaxDepth) fail_too_deep(here);
    charge_nodes(known->second.nodes, here, "aliases");
    attach(known->second.node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(make_node(Node::Kind::sequence, mark), tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(make_node(Node::Kind::mapping, mark), tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  Node make_node(Node::Kind kind, const YAML::Mark& mark) {
    Node node;
    node.kind = kind;
    node.file = file_;
    node.line = mark.line + 1;
    return node;
  }
  static void check_tag(const Node& node, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      node.fail(fmt::format("tag '{}' is not understood; leave it out", tag));
  }
  [[noreturn]] static void fail_too_deep(const Node& node) {
    node.fail(fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  static std::size_t depth(const Node& node) {
    std::size_t deepest = 0;
    for (const Node& item : node.items) deepest = std::max(deepest, depth(item));
    for (const Entry& entry : node.entries) deepest = std::max(deepest, depth(entry.value));
    return deepest + 1;
  }
  static std::size_t text_node_count(const std::string& text) { return 1 + text.size() / kTextBytesPerNode; }
  static std::size_t count(const Node& node) {
    std::size_t nodes = text_node_count(node.text);
    for (const Node& item : node.items) nodes += count(item);
    for (const Entry& entry : node.entries) nodes += text_node_count(entry.key) + count(entry.value);
    return nodes;
  }

  void begin(Node node, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(node, tag);
    if (open_.size() >= kMaxDepth) fail_too_deep(node);
    OpenNode level;
    level.node = std::move(node);
    level.anchor = anchor;
    open_.push_back(std::move(level));
  }
  void end() {
    OpenNode level = std::move(open_.back());
    open_.pop_back();
    add_node(std::move(level.node), level.anchor);
  }
  void add_node(Node node, YAML::anchor_t anchor) {
    nodes_ += text_node_count(node.text);
    if (nodes_ > kMaxNodes) node.fail(fmt::format("more than {} values", kMaxNodes));
    if (anchor != YAML::NullAnchor) store_anchor(node, anchor);
    attach(std::move(node));
  }
  /// Stores a copy of the value; the copy counts as many nodes as the original.
  void store_anchor(const Node& node, YAML::anchor_t anchor) {
    const std::size_t nodes = count(node);
    charge_nodes(nodes, node, "anchors");
    anchors_[anchor] = {node, nodes, depth(node)};
  }
  void charge_nodes(std::size_t nodes, const Node& at, const char* by) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) at.fail(fmt::format("{} grow the document beyond {} values; write fewer", by, kMaxNodes));
  }
  void attach(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == Node::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, node);
    } else {
      parent.node.entries.push_back({std::move(parent.key), parent.key_line, std::move(node)});
      parent.has_key = false;
    }
  }
  static void take_key(OpenNode& parent, const Node& node) {
    if (node.kind != Node::Kind::scalar) node.fail(fmt::format("a key must be plain text, not {}", describe(node)));
    if (parent.node.entries.size() >= kMaxKeys) node.fail(fmt::format("more than {} keys in a mapping", kMaxKeys));
    if (!parent.keys.insert(node.text).second) fail_repeated_key(parent.node, node);
    parent.has_key = true;
    parent.key = core::line_text(node.text);
    parent.key_line = node.line;
  }
  [[noreturn]] static void fail_repeated_key(const Node& mapping, const Node& key) {
    const auto first = std::find_if(mapping.entries.begin(), mapping.entries.end(),
                                    [&](const Entry& entry) { return entry.key == core::line_text(key.text); });
    key.fail(fmt::format("key '{}' is repeated (first on line {}); keep one", first->key, first->line));
  }

  std::shared_ptr<const std::string> file_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
  Node root_;
};

void check_indicators(std::string_view text, const std::string& name) {
  std::size_t indicators = 0;
  for (std::size_t at = 0; (at = text.find_first_of(kIndicators, at)) != std::string_view::npos; ++at)
    if (++indicators > kMaxIndicators)
      throw InputError(
          fmt::format("more than {} commas, brackets, quotes and the like; write fewer values", kMaxIndicators), name);
}

/// Returns the first line that is indented with a tab, counted from 1; 0 if there is none.
int tabbed_line(std::string_view text) {
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = text.find_first_not_of(" \t", at);
    if (first < end && text.substr(at, first - at).find('\t') != std::string_view::npos) return line;
    at = end + 1;
  }
  return 0;
}

bool is_plain(const Node& scalar) {
  const std::string& text = scalar.text;
  constexpr std::string_view kNotPlain = ",[]{}#&*!|>'\"@`:?\\%\n\r\t";
  return !scalar.quoted && !text.empty() && text.find_first_of(kNotPlain) == std::string::npos && text.front() != ' ' &&
         text.back() != ' ' && !text.starts_with("- ");
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const std::size_t escape = std::string_view("\n\r\t\"\\").find(c);
    quoted += escape == std::string_view::npos ? std::string(1, c) : std::string{'\\', "nrt\"\\"[escape]};
  }
  return quoted + "\"";
}

}  // namespace

std::string flow_text(const Node& node) {
  std::string text;
  const auto separate = [&] { text += text.empty() ? "" : ", "; };
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return is_plain(node) ? node.text : in_quotes(node.text);
    case Node::Kind::sequence:
      for (const Node& item : node.items) separate(), text += flow_text(item);
      return "[" + text + "]";
    case Node::Kind::mapping:
      break;
  }
  for (const Entry& entry : node.entries) {
    Node key;
    key.kind = Node::Kind::scalar, key.text = entry.key;
    separate(), text += flow_text(key) + ": " + flow_text(entry.value);
  }
  return "{" + text + "}";
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

void Node::fail(const std::string& what) const {
  throw InputError(what, file ? *file : std::string(), line);
}

void check_keys(const Node& node, const std::vector<std::string>& known, const char* what) {
  if (node.kind != Node::Kind::mapping)
    node.fail(
        fmt::format("{} must be a mapping with the keys {}, not {}", what, fmt::join(known, ", "), describe(node)));
  for (const Entry& entry : node.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw InputError(fmt::format("unknown key '{}'{}", entry.key, suggestion(entry.key, known)), *node.file,
                       entry.line);
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
    case Node::Kind::scalar:
      break;
  }
  constexpr std::size_t kShown = 60;
  const std::string shown = node.text.size() > kShown ? node.text.substr(0, kShown) + "…" : node.text;
  return node.quoted ? fmt::format("the text \"{}\"", shown) : fmt::format("'{}'", shown);
}

Node parse_yaml(std::string_view text, const std::string& name) {
  check_size(text.size(), name);
  check_text(text, name);
  check_indicators(text, name);
  std::istringstream stream{std::string(text)};
  Builder builder(std::make_shared<const std::string>(name));
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError("the file is empty", name, 1);
    parser.HandleNextDocument(builder);  // throws if there is a second document
    return builder.take_root();
  } catch (const YAML::Exception& error) {
    if (const int tab = tabbed_line(text); tab > 0)
      throw InputError("bad YAML: the line is indented with a tab; YAML takes spaces", name, tab);
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    throw InputError(fmt::format("bad YAML: {}", error.msg), name, line);
  }
}

}  // namespace manyworlds::experiments::import
