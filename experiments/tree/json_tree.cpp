// Builds the tree from the events of nlohmann's parser, which reads through an iterator that counts lines.
#include "experiments/tree/json_tree.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/text/json.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using nlohmann::json;

/// Walks over text and counts the line ends that it has passed.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, int& line) : at_(at), line_(&line) {}
  const char& operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }
  bool operator!=(const LineCounter& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  int* line_;
};

/// Returns `text` with null in place of Infinity, -Infinity and NaN outside strings, which Python writes as numbers.
std::string without_python_constants(std::string_view text) {
  constexpr std::string_view kConstants[] = {"-Infinity", "Infinity", "NaN"};
  std::string result;
  result.reserve(text.size());
  bool inside = false;  // inside a string
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto* found = std::find_if(std::begin(kConstants), std::end(kConstants),
                                     [&](std::string_view one) { return !inside && rest.starts_with(one); });
    if (found != std::end(kConstants)) {
      result += "null";
      at += found->size();
      continue;
    }
    if (inside && rest[0] == '\\' && rest.size() > 1)
      result += text[at++];
    else if (rest[0] == '"')
      inside = !inside;
    result += text[at++];
  }
  return result;
}

/// Returns `text` with blanks in place of control characters, which would break a message into lines.
std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

/// Receives the parser's events. A value goes into the innermost open list or mapping.
class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  TreeBuilder(std::string name, std::string_view text, const int& line)
      : file_(std::make_shared<const std::string>(std::move(name))), text_(text), line_(line) {}

  Node take_root() { return std::move(root_); }

  bool null() override { return add(Node::Kind::null, "", false); }
  bool boolean(bool value) override { return add(Node::Kind::scalar, value ? "true" : "false", false); }
  bool number_integer(std::int64_t value) override { return add(Node::Kind::scalar, std::to_string(value), false); }
  bool number_unsigned(std::uint64_t value) override { return add(Node::Kind::scalar, std::to_string(value), false); }
  bool number_float(double /*value*/, const std::string& text) override { return add(Node::Kind::scalar, text, false); }
  bool string(std::string& text) override { return add(Node::Kind::scalar, on_one_line(std::move(text)), true); }
  bool binary(json::binary_t& /*bytes*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Node::Kind::mapping); }
  bool start_array(std::size_t /*size*/) override { return open(Node::Kind::sequence); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override;
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const json::exception& error) override {
    throw bad_json(error, *file_, text_, line_);
  }

 private:
  /// A list or mapping that is not closed yet.
  struct Open {
    Node node;
    std::string key;
    int key_line = 0;
    std::map<std::string, int> lines;  // of the keys so far
  };

  bool add(Node::Kind kind, std::string text, bool quoted);
  bool open(Node::Kind kind);
  bool close();
  void place(Node node);
  int line_of_value() const {
    if (open_.empty()) return line_;
    return open_.back().node.kind == Node::Kind::mapping ? open_.back().key_line : open_.back().node.line;
  }

  std::shared_ptr<const std::string> file_;
  std::string_view text_;
  const int& line_;
  std::vector<Open> open_;
  Node root_;
};

bool TreeBuilder::key(std::string& name) {
  Open& mapping = open_.back();
  std::string text = on_one_line(std::move(name));
  const auto [first, is_new] = mapping.lines.emplace(text, line_);
  if (!is_new)
    throw InputError(fmt::format("'{}' is given twice, first in line {}; keep one", text, first->second), *file_,
                     line_);
  mapping.key = std::move(text);
  mapping.key_line = line_;
  return true;
}

bool TreeBuilder::add(Node::Kind kind, std::string text, bool quoted) {
  Node node;
  node.kind = kind;
  node.quoted = quoted;
  node.text = std::move(text);
  node.file = file_;
  node.line = line_of_value();
  place(std::move(node));
  return true;
}

bool TreeBuilder::open(Node::Kind kind) {
  Open next;
  next.node.kind = kind;
  next.node.file = file_;
  next.node.line = line_of_value();
  open_.push_back(std::move(next));
  return true;
}

bool TreeBuilder::close() {
  Node node = std::move(open_.back().node);
  open_.pop_back();
  place(std::move(node));
  return true;
}

void TreeBuilder::place(Node node) {
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Open& around = open_.back();
  if (around.node.kind == Node::Kind::sequence)
    around.node.items.push_back(std::move(node));
  else
    around.node.entries.push_back({around.key, around.key_line, std::move(node)});
}

}  // namespace

Node parse_json_tree(std::string_view text, const std::string& name, std::size_t max_bytes) {
  check_json_limits(text, name, max_bytes);
  check_text(text, name);
  const std::string plain = without_python_constants(text);
  int line = 1;
  TreeBuilder builder(name, plain, line);
  json::sax_parse(LineCounter(plain.data(), line), LineCounter(plain.data() + plain.size(), line), &builder);
  return builder.take_root();
}

}  // namespace manyworlds::experiments::import
