// Builds the tree from yaml-cpp's events, so that aliases are counted before they grow.
#include "experiments/import/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr std::size_t kMaximumBytes = 8u << 20;
constexpr std::size_t kMaximumDepth = 64;
constexpr std::size_t kMaximumKeys = 10'000;      // of one mapping
constexpr std::size_t kMaximumNodes = 1'000'000;  // after aliases are replaced by what they stand for

/// One level of the tree that is being built; a mapping waits for a key, then for its value.
struct Open {
  Node node;
  YAML::anchor_t anchor = YAML::NullAnchor;
  bool has_key = false;
  std::string key;
  int key_line = 0;
};

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
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
    nodes_ += known->second.second;
    if (nodes_ > kMaximumNodes)
      here.fail(fmt::format("aliases grow the document beyond {} values; write fewer", kMaximumNodes));
    if (open_.size() + depth(known->second.first) > kMaximumDepth) too_deep(here);
    place(known->second.first, YAML::NullAnchor);
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
  static std::size_t count(const Node& node) {
    std::size_t nodes = 1;
    for (const Node& item : node.items) nodes += count(item);
    for (const Entry& entry : node.entries) nodes += count(entry.value);
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
    if (++nodes_ > kMaximumNodes) node.fail(fmt::format("more than {} values", kMaximumNodes));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {node, count(node)};
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
    for (const Entry& entry : parent.node.entries)
      if (entry.key == node.text)
        node.fail(fmt::format("key '{}' is repeated (first on line {}); keep one", node.text, entry.line));
    parent.has_key = true;
    parent.key = node.text;
    parent.key_line = node.line;
  }

  std::shared_ptr<const std::string> file_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::pair<Node, std::size_t>> anchors_;
  std::size_t nodes_ = 0;
  Node root_;
};

int lines_before(std::string_view text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// Length of the UTF-8 sequence at `text[at]`; 0 where there is none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xC0u) != 0x80u) return 0;
  const unsigned second = byte(at + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
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

void check_text(std::string_view text, const std::string& name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7F;
    if (length == 0 || control)
      throw InputError(fmt::format("byte 0x{:02x} is no text; the file must be UTF-8", byte), name,
                       lines_before(text, at));
    at += length;
  }
}

Node parse_yaml(std::string_view text, const std::string& name) {
  if (text.size() > kMaximumBytes) throw InputError(fmt::format("larger than {} bytes", kMaximumBytes), name);
  check_text(text, name);
  std::istringstream stream{std::string(text)};
  Builder builder(std::make_shared<const std::string>(name));
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError("the file is empty", name, 1);
    Node root = builder.take();
    Builder second(std::make_shared<const std::string>(name));
    if (parser.HandleNextDocument(second)) second.take().fail("a second document begins here; a file holds one");
    return root;
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    throw InputError(fmt::format("bad YAML: {}", error.msg), name, line);
  }
}

std::string read_text(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) throw InputError("is a folder; give a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("cannot be read: {}", std::strerror(errno)), path);
  std::string text(kMaximumBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw InputError("cannot be read to its end", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaximumBytes) throw InputError(fmt::format("larger than {} bytes", kMaximumBytes), path);
  return text;
}

}  // namespace manyworlds::experiments::import
