#include "experiments/text/xml.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

constexpr std::size_t kMaxDepth = 64, kMaxAttributes = 256;
constexpr std::string_view kBlanks = " \t\r\n";

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  void walk(const std::function<void(const XmlElement&)>& begin, const std::function<void()>& end) {
    while (skip_to_tag()) {
      if (rest_.starts_with("<!--"))
        skip_past("-->");
      else if (rest_.starts_with("<?"))
        skip_past("?>");
      else if (rest_.starts_with("<!"))
        skip_past(">");
      else if (rest_.starts_with("</"))
        close(end);
      else
        open(begin, end);
    }
    if (!open_.empty()) fail(fmt::format("the file ends inside <{}>", open_.back()));
    if (!any_) fail("has no element");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw core::InputError(what, file_, line_); }

  void advance(std::size_t bytes) {
    line_ += static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(bytes), '\n'));
    rest_.remove_prefix(bytes);
  }
  bool skip_to_tag() {
    advance(std::min(rest_.find('<'), rest_.size()));
    return !rest_.empty();
  }
  void skip_past(std::string_view mark) {
    const std::size_t at = rest_.find(mark);
    if (at == rest_.npos) fail(fmt::format("lacks '{}' behind this", mark));
    advance(at + mark.size());
  }
  void skip_blanks() { advance(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  std::string take_name() {
    const std::size_t end = std::min(rest_.find_first_of(" \t\r\n=/>\"'<"), rest_.size());
    std::string name(rest_.substr(0, end));
    if (name.empty()) fail("lacks a name");
    advance(end);
    return name;
  }

  void close(const std::function<void()>& end) {
    advance(2);
    const std::string name = take_name();
    skip_blanks();
    if (!rest_.starts_with('>')) fail(fmt::format("</{} must end with >", name));
    if (open_.empty() || open_.back() != name)
      fail(fmt::format("</{}> closes {}", name, open_.empty() ? "nothing" : "<" + open_.back() + ">"));
    advance(1);
    open_.pop_back();
    end();
  }

  void open(const std::function<void(const XmlElement&)>& begin, const std::function<void()>& end) {
    XmlElement element;
    element.line = line_;
    advance(1);
    element.name = take_name();
    for (skip_blanks(); !rest_.starts_with('>') && !rest_.starts_with("/>"); skip_blanks()) read_attribute(element);
    const bool empty = rest_.starts_with('/');
    advance(empty ? 2 : 1);
    any_ = true;
    begin(element);
    if (empty) return end();
    open_.push_back(element.name);
    if (open_.size() > kMaxDepth) fail(fmt::format("is nested deeper than {} levels", kMaxDepth));
  }

  void read_attribute(XmlElement& element) {
    if (rest_.empty()) fail(fmt::format("the file ends inside <{}", element.name));
    const std::string key = take_name();
    skip_blanks();
    if (!rest_.starts_with('=')) fail(fmt::format("attribute '{}' lacks a value", key));
    advance(1);
    skip_blanks();
    const char quote = rest_.empty() ? ' ' : rest_.front();
    const std::size_t close = quote == '"' || quote == '\'' ? rest_.find(quote, 1) : rest_.npos;
    if (close == rest_.npos) fail(fmt::format("the value of '{}' must be in quotes", key));
    if (element.attributes.size() == kMaxAttributes ||
        !element.attributes.emplace(key, rest_.substr(1, close - 1)).second)
      fail(fmt::format("attribute '{}' is there twice", key));
    advance(close + 1);
  }

  std::string_view rest_;
  std::string file_;
  int line_ = 1;
  bool any_ = false;
  std::vector<std::string> open_;
};

}  // namespace

std::string_view XmlElement::value(std::string_view attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? std::string_view() : found->second;
}

void walk_xml(std::string_view text, const std::string& name, const std::function<void(const XmlElement&)>& begin,
              const std::function<void()>& end) {
  check_size(text.size(), name);
  check_text(text, name);
  XmlReader(text, name).walk(begin, end);
}

}  // namespace manyworlds::experiments::import
