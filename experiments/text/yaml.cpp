// Builds the tree from yaml-cpp's events, so that aliases are counted before they grow.
#include "experiments/text/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_set>

#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr std::size_t kMaximumDepth = 64;
constexpr std::size_t kMaximumKeys = 10'000;    // of one mapping
constexpr std::size_t kMaximumNodes = 500'000;  // after aliases are replaced by what they stand for, with what is kept
                                                // for anchors
constexpr std::size_t kValueBytes = 100;        // of text, beyond which a value counts as several
// yaml-cpp keeps the tokens of everything inside brackets, about 300 bytes each, until the outermost one is closed.
constexpr std::size_t kMaximumSigns = 1'000'000;
constexpr std::string_view kSigns = ",[]{}?:&*!'\"";

/// One level of the tree that is being built; a mapping waits for a key, then for its value.
struct Open {
  Node node;
  YAML::anchor_t anchor = YAML::NullAnchor;
  std::unordered_set<std::string> keys;  // of a mapping, so far
  bool has_key = false;
  std::string key;
  int key_line = 0;
};

/// What an alias stands for.
struct Anchored {
  Node node;
  std::size_t nodes = 0, depth = 0;
};

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) make(Node::Kind::null, mark).fail("a second document begins here; a file holds one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { place(make(Node::Kind::null, mark), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Node::Kind::scalar, mark);
    check_tag(node, tag);
    check_text(value, *file_);
    node.quoted = tag == "!";
    if (!node.quoted && (value == "~" || value == "null" || value.empty())) node.kind = Node::Kind::null;
    node.text = value;
    place(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    const Node here = make(Node::Kind::null, mark);
    if (known == anchors_.end()) here.fail("an alias stands inside what it refers to; write the value out");
    if (open_.size() + known->second.depth > kMaximumDepth) too_deep(here);
    grow(known->second.nodes, here, "aliases");
    put(known->second.node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(make(Node::Kind::sequence, mark), tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(make(Node::Kind::mapping, mark), tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  Node make(Node::Kind kind, const YAML::Mark& mark) {
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
  [[noreturn]] static void too_deep(const Node& node) {
    node.fail(fmt::format("nested deeper than {} levels", kMaximumDepth));
  }
  static std::size_t depth(const Node& node) {
    std::size_t deepest = 0;
    for (const Node& item : node.items) deepest = std::max(deepest, depth(item));
    for (const Entry& entry : node.entries) deepest = std::max(deepest, depth(entry.value));
    return deepest + 1;
  }
  static std::size_t weight(const std::string& text) { return 1 + text.size() / kValueBytes; }
  static std::size_t count(const Node& node) {
    std::size_t nodes = weight(node.text);
    for (const Node& item : node.items) nodes += count(item);
    for (const Entry& entry : node.entries) nodes += weight(entry.key) + count(entry.value);
    return nodes;
  }

  void begin(Node node, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(node, tag);
    if (open_.size() >= kMaximumDepth) too_deep(node);
    Open level;
    level.node = std::move(node);
    level.anchor = anchor;
    open_.push_back(std::move(level));
  }
  void end() {
    Open level = std::move(open_.back());
    open_.pop_back();
    place(std::move(level.node), level.anchor);
  }
  void place(Node node, YAML::anchor_t anchor) {
    nodes_ += weight(node.text);
    if (nodes_ > kMaximumNodes) node.fail(fmt::format("more than {} values", kMaximumNodes));
    if (anchor != YAML::NullAnchor) keep(node, anchor);
    put(std::move(node));
  }
  /// The whole value is copied, so the copy counts as much as its original.
  void keep(const Node& node, YAML::anchor_t anchor) {
    const std::size_t nodes = count(node);
    grow(nodes, node, "anchors");
    anchors_[anchor] = {node, nodes, depth(node)};
  }
  void grow(std::size_t nodes, const Node& at, const char* by) {
    nodes_ += nodes;
    if (nodes_ > kMaximumNodes)
      at.fail(fmt::format("{} grow the document beyond {} values; write fewer", by, kMaximumNodes));
  }
  void put(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, node);
    } else {
      parent.node.entries.push_back({std::move(parent.key), parent.key_line, std::move(node)});
      parent.has_key = false;
    }
  }
  static void take_key(Open& parent, const Node& node) {
    if (node.kind != Node::Kind::scalar) node.fail(fmt::format("a key must be plain text, not {}", describe(node)));
    if (parent.node.entries.size() >= kMaximumKeys)
      node.fail(fmt::format("more than {} keys in a mapping", kMaximumKeys));
    if (!parent.keys.insert(node.text).second) repeated(parent.node, node);
    parent.has_key = true;
    parent.key = node.text;
    parent.key_line = node.line;
  }
  [[noreturn]] static void repeated(const Node& mapping, const Node& key) {
    const auto first = std::find_if(mapping.entries.begin(), mapping.entries.end(),
                                    [&](const Entry& entry) { return entry.key == key.text; });
    key.fail(fmt::format("key '{}' is repeated (first on line {}); keep one", key.text, first->line));
  }

  std::shared_ptr<const std::string> file_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
  Node root_;
};

void check_signs(std::string_view text, const std::string& name) {
  std::size_t signs = 0;
  for (std::size_t at = 0; (at = text.find_first_of(kSigns, at)) != std::string_view::npos; ++at)
    if (++signs > kMaximumSigns)
      throw InputError(
          fmt::format("more than {} commas, brackets, quotes and the like; write fewer values", kMaximumSigns), name);
}

/// The first line that is indented with a tab, counted from 1; 0 where there is none.
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

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

void Node::fail(const std::string& what) const {
  throw InputError(what, file ? *file : std::string(), line);
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
  check_signs(text, name);
  std::istringstream stream{std::string(text)};
  Builder builder(std::make_shared<const std::string>(name));
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError("the file is empty", name, 1);
    parser.HandleNextDocument(builder);  // ends in an error where there is one more
    return builder.take();
  } catch (const YAML::Exception& error) {
    if (const int tab = tabbed_line(text); tab > 0)
      throw InputError("bad YAML: the line is indented with a tab; YAML takes spaces", name, tab);
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    throw InputError(fmt::format("bad YAML: {}", error.msg), name, line);
  }
}

}  // namespace manyworlds::experiments::import
