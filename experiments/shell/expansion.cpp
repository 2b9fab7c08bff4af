#include "experiments/shell/expansion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/shell/pattern.hpp"

namespace manyworlds::experiments::shell {
namespace {

constexpr int kMaxDepth = 40;

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Returns the position behind the bracket that closes the one at raw[at].
std::size_t behind_closing(const std::string& raw, std::size_t at, char open, char close) {
  int level = 0;
  for (std::size_t i = at; i < raw.size(); ++i) {
    if (raw[i] == '\\')
      ++i;
    else if (raw[i] == '\'' && open == '(')
      i = std::min(raw.find('\'', i + 1), raw.size() - 1);
    else if (raw[i] == open)
      ++level;
    else if (raw[i] == close && --level == 0)
      return i + 1;
  }
  return raw.size();
}

std::string replaced(std::string text, const std::string& what, const std::string& with, bool all) {
  if (what.empty()) return text;
  for (std::size_t at = text.find(what); at != std::string::npos && text.size() < (1u << 20);
       at = all ? text.find(what, at + with.size()) : std::string::npos)
    text.replace(at, what.size(), with);
  return text;
}

/// Returns `text` without the shortest or longest part at its beginning or end that matches.
std::string stripped(const std::string& text, const std::string& pattern, bool front, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    const std::string_view part =
        front ? std::string_view(text).substr(0, length) : std::string_view(text).substr(text.size() - length);
    if (matches(pattern, part)) return front ? text.substr(length) : text.substr(0, text.size() - length);
  }
  return text;
}

std::string cased(std::string text, bool upper, bool all) {
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i)
    text[i] = static_cast<char>(upper ? std::toupper(static_cast<unsigned char>(text[i]))
                                      : std::tolower(static_cast<unsigned char>(text[i])));
  return text;
}

}  // namespace

/// The parts of ${name[index]operation operand}.
struct Expander::Parameter {
  std::string name, index, operation, operand;
  bool length = false;    // ${#name}
  bool indirect = false;  // ${!name}
  std::string whole;
};

std::vector<Text> Expander::fields(const Word& word) {
  fields_.clear();
  has_field_ = false;
  field_ = {"", {file_, word.line}};
  line_ = word.line;
  split_ = true, as_pattern_ = false;
  expand(word.raw, false);
  end_field();
  return std::move(fields_);
}

std::string Expander::text(const Word& word, bool as_pattern) {
  line_ = word.line;
  return nested(word.raw, as_pattern);
}

/// Expands to one text, while another word may be half expanded.
std::string Expander::nested(const std::string& raw, bool as_pattern) {
  Expander inner(state_, environment_, file_, substitute_);
  inner.depth_ = depth_ + 1;
  inner.line_ = line_;
  inner.split_ = false;
  inner.as_pattern_ = as_pattern;
  if (inner.depth_ > kMaxDepth) throw core::InputError("expansions nest too deep", *file_, line_);
  inner.expand(raw, false);
  return inner.field_.text;
}

std::string Expander::document(const HereDocument& document) {
  if (document.quoted) return document.text;
  std::string escaped = "\"";
  for (const char c : document.text) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  line_ = document.line;
  return nested(escaped + "\"");
}

std::optional<std::int64_t> Expander::number(const std::string& expression, int line) {
  line_ = line;
  const std::string expanded = nested(expression);
  if (!is_known(expanded)) return std::nullopt;
  return arithmetic_value(expanded, [&](const std::string& name) { return integer_of(scalar(name)); });
}

void Expander::end_field() {
  if (has_field_) fields_.push_back(field_);
  has_field_ = false;
  field_.text.clear();
  field_.place = {file_, line_};
}

void Expander::add(const std::string& piece, bool quoted) {
  environment_.work(piece.size(), {file_, line_});
  if (quoted || !split_) {
    has_field_ = true;
    for (const char c : piece) {
      if (as_pattern_ && quoted && std::string_view("*?[\\").find(c) != std::string_view::npos) field_.text += '\\';
      field_.text += c;
    }
    return;
  }
  const Place place = field_.place;
  bool in_mark = false;
  for (const char c : piece) {
    in_mark = (in_mark || c == kMarkBegin) && c != kMarkEnd;
    if (!in_mark && (c == ' ' || c == '\t' || c == '\n')) {
      end_field();
      field_.place = place;
    } else {
      has_field_ = true;
      field_.text += c;
    }
  }
}

/// Adds the items of an array: each a field of its own if quoted and not joined.
void Expander::add_all(const std::vector<Text>& items, bool quoted, bool joined) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && (joined || !split_))
      add(" ", quoted);
    else if (i > 0)
      end_field();
    if (split_ && !joined && items[i].place.line > 0) field_.place = items[i].place;
    add(items[i].text, quoted);
  }
}

void Expander::expand(const std::string& raw, bool quoted) {
  if (raw.starts_with('<') && raw.ends_with('>'))
    return add(unknown(fmt::format("{}, which is to be filled in", raw)), true);
  for (std::size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    if (c == kMarkBegin) {
      add_mark(raw, at);
    } else if (c == '\\' && at + 1 < raw.size()) {
      add(std::string(1, raw[at + 1]), true);
      at += 2;
    } else if (c == '\'') {
      const std::size_t end = std::min(raw.find('\'', at + 1), raw.size());
      add(raw.substr(at + 1, end - at - 1), true);
      at = end + 1;
    } else if (c == '"') {
      expand_quoted(raw, at);
    } else if (c == '$' || c == '`') {
      expand_dollar(raw, at, quoted);
    } else {
      add(std::string(1, c), !std::isspace(static_cast<unsigned char>(c)) && !as_pattern_);
      ++at;
    }
  }
}

/// Adds an unknown part that the text of a script within the script has.
void Expander::add_mark(const std::string& raw, std::size_t& at) {
  const std::size_t end = std::min(raw.find(kMarkEnd, at), raw.size() - 1);
  add(raw.substr(at, end + 1 - at), true);
  at = end + 1;
}

void Expander::expand_quoted(const std::string& raw, std::size_t& at) {
  // "${name[@]}" of an empty array is no field at all, and "" is one.
  const bool began = has_field_;
  const std::string_view inside = std::string_view(raw).substr(at + 1);
  const bool all_items =
      inside.starts_with("$@\"") || (inside.starts_with("${") && inside.find("[@]") < inside.find('"'));
  const std::size_t fields = fields_.size();
  add("", true);
  for (++at; at < raw.size() && raw[at] != '"';) {
    if (raw[at] == kMarkBegin) {
      add_mark(raw, at);
    } else if (raw[at] == '\\' && at + 1 < raw.size()) {
      const bool escapes = std::string_view("$`\"\\").find(raw[at + 1]) != std::string_view::npos;
      add(escapes ? raw.substr(at + 1, 1) : raw.substr(at, 2), true);
      at += 2;
    } else if (raw[at] == '$' || raw[at] == '`') {
      expand_dollar(raw, at, true);
    } else {
      add(std::string(1, raw[at++]), true);
    }
  }
  if (all_items && field_.text.empty() && fields == fields_.size()) has_field_ = began;
  ++at;
}

void Expander::expand_dollar(const std::string& raw, std::size_t& at, bool quoted) {
  const Place here{file_, line_};
  if (raw[at] == '`') {
    const std::size_t end = std::min(raw.find('`', at + 1), raw.size());
    add(substitute_(raw.substr(at + 1, end - at - 1), here), quoted);
    at = end + 1;
    return;
  }
  const char next = at + 1 < raw.size() ? raw[at + 1] : '\0';
  if (raw.compare(at, 3, "$((") == 0) {
    const std::size_t end = behind_closing(raw, at + 1, '(', ')');
    const std::string expression = raw.substr(at + 3, end > at + 5 ? end - at - 5 : 0);
    const auto value = number(expression, line_);
    add(value ? std::to_string(*value) : unknown(why_no_value(expression)), quoted);
    at = end;
  } else if (next == '(') {
    const std::size_t end = behind_closing(raw, at + 1, '(', ')');
    add(substitute_(raw.substr(at + 2, end > at + 3 ? end - at - 3 : 0), here), quoted);
    at = end;
  } else if (next == '{') {
    const std::size_t end = behind_closing(raw, at + 1, '{', '}');
    expand_braced(raw.substr(at + 2, end > at + 3 ? end - at - 3 : 0), quoted);
    at = end;
  } else if (is_name(next) || std::string_view("@*#?$!-").find(next) != std::string_view::npos) {
    std::size_t end = at + 2;
    if (is_name(next) && std::isdigit(static_cast<unsigned char>(next)) == 0)
      while (end < raw.size() && is_name(raw[end])) ++end;
    if (next == '\0') end = at + 1;
    next == '\0' ? add("$", true) : expand_braced(raw.substr(at + 1, end - at - 1), quoted);
    at = end;
  } else if (next == '\'') {  // $'text'
    ++at;
  } else {
    add("$", true);
    ++at;
  }
}

std::optional<Expander::Parameter> Expander::parse(const std::string& content) const {
  Parameter one;
  one.whole = content;
  std::size_t at = 0;
  if (content.size() > 1 && content[0] == '#') one.length = true, ++at;
  if (content.size() > 1 && content[0] == '!') one.indirect = true, ++at;
  while (at < content.size() && is_name(content[at])) one.name.push_back(content[at++]);
  if (one.name.empty() && at < content.size() &&
      std::string_view("@*#?$!-").find(content[at]) != std::string_view::npos)
    one.name = content[at++];
  if (one.name.empty()) return std::nullopt;
  if (at < content.size() && content[at] == '[') {
    const std::size_t end = content.find(']', at);
    if (end == std::string::npos) return std::nullopt;
    one.index = content.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  if (one.name == "@" || one.name == "*") one.index = one.name;
  for (const char* op :
       {":-", ":=", ":+", ":?", "##", "%%", "//", "^^", ",,", "-", "=", "+", "?", "#", "%", "/", "^", ",", ":"})
    if (content.compare(at, std::string_view(op).size(), op) == 0 && at < content.size()) {
      one.operation = op;
      break;
    }
  if (one.operation.empty() && at < content.size()) return std::nullopt;
  one.operand = content.substr(at + one.operation.size());
  if ((one.length || one.indirect) && !one.operation.empty()) return std::nullopt;
  return one;
}

const std::vector<Text>* Expander::array_of(const std::string& name) const {
  if (name == "@" || name == "*") return &state_.arguments;
  const auto found = state_.variables.find(name);
  return found == state_.variables.end() ? nullptr : &found->second.items;
}

/// Returns a variable's value, or a mark.
std::string Expander::scalar(const std::string& name) {
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 && name != "0") {
    const auto index = integer_of(name);
    if (index && *index >= 1 && *index <= static_cast<std::int64_t>(state_.arguments.size()))
      return state_.arguments[static_cast<std::size_t>(*index) - 1].text;
  }
  if (name == "#") {
    for (const Text& one : state_.arguments)
      if (!is_known(one.text)) return unknown("the number of arguments");
    return std::to_string(state_.arguments.size());
  }
  if (const auto found = state_.variables.find(name); found != state_.variables.end())
    return found->second.items.empty() ? "" : found->second.items.front().text;
  if (const auto given = environment_.given.find(name); given != environment_.given.end()) {
    environment_.used.insert(name);
    return given->second;
  }
  if (const auto asked = environment_.batch.find(name); asked != environment_.batch.end()) return asked->second;
  if (const auto all = state_.variables.find("*"); all != state_.variables.end())
    return all->second.items.front().text;  // a file that was not found may have set any
  return unset_variable(name);
}

/// Returns why an arithmetic expression has no value: why the first variable in it that has none has none.
std::string Expander::why_no_value(const std::string& expression) {
  for (std::size_t at = 0; at < expression.size();) {
    std::size_t end = at;
    while (end < expression.size() &&
           (std::isalnum(static_cast<unsigned char>(expression[end])) != 0 || expression[end] == '_'))
      ++end;
    const std::string name = expression.substr(at, end - at);
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0)
      if (const std::string value = scalar(name); !is_known(value)) return why_unknown(value);
    at = std::max(end, at + 1);
  }
  const std::string why = why_unknown(expression);
  return why.empty() ? fmt::format("$(({})), which has no known value", expression) : why;
}

std::string Expander::element(const std::string& name, const std::string& index) {
  const std::vector<Text>* items = array_of(name);
  const auto at = number(index, line_);
  if (items == nullptr || !at) return unknown(fmt::format("${{{}[{}]}}", name, index));
  const auto size = static_cast<std::int64_t>(items->size());
  const std::int64_t place = *at < 0 ? size + *at : *at;
  for (const Text& one : *items)
    if (!is_known(one.text)) return one.text;
  return place >= 0 && place < size ? (*items)[static_cast<std::size_t>(place)].text : "";
}

std::string Expander::value_of(const Parameter& parameter) {
  if (parameter.indirect) {
    const std::string name = scalar(parameter.name);
    if (!is_known(name)) return name;
    if (name.empty() || !parameter.index.empty()) return unknown(fmt::format("${{{}}}", parameter.whole));
    return scalar(name);
  }
  return parameter.index.empty() ? scalar(parameter.name) : element(parameter.name, parameter.index);
}

/// Expands ${name:-default} and its kind.
std::string Expander::or_default(const Parameter& parameter, const std::string& value) {
  const char kind = parameter.operation.back();
  const bool colon = parameter.operation.size() > 1;
  std::string unset_name = name_if_unset(value);
  if (is_size(parameter.name) && value == unset_variable(parameter.name)) unset_name = parameter.name;
  if (unset_name.empty() && !is_known(value)) return kind == '+' ? unknown(why_unknown(value)) : value;
  const bool absent = !unset_name.empty() || (colon && value.empty());
  if (kind == '+') return absent ? "" : nested(parameter.operand);
  if (!absent || kind == '?') return value;
  const std::string replacement = nested(parameter.operand);
  const bool argument = std::isdigit(static_cast<unsigned char>(parameter.name[0])) != 0;
  if (!unset_name.empty() && !argument) environment_.assumed[parameter.name] = replacement;
  if (kind == '=' && !argument) state_.variables[parameter.name] = {{{replacement, {file_, line_}}}, false};
  return replacement;
}

std::string Expander::operated(const Parameter& parameter, const std::string& value) {
  const std::string& op = parameter.operation;
  if (op.empty()) return value;
  if (std::string_view("-=+?").find(op.back()) != std::string_view::npos) return or_default(parameter, value);
  if (!is_known(value)) return unknown(why_unknown(value));
  if (op[0] == '#' || op[0] == '%') {
    const std::string pattern = nested(parameter.operand, true);
    environment_.work(value.size() * (value.size() + pattern.size()), {file_, line_});
    return is_known(pattern) ? stripped(value, pattern, op[0] == '#', op.size() > 1) : pattern;
  }
  if (op[0] == '/') {
    const std::size_t slash = parameter.operand.find('/');
    const std::string what = nested(parameter.operand.substr(0, slash));
    const std::string with = slash == std::string::npos ? "" : nested(parameter.operand.substr(slash + 1));
    const bool plain = what.find_first_of("*?[#%") == std::string::npos;
    if (plain && is_known(what) && is_known(with)) return replaced(value, what, with, op.size() > 1);
  }
  if ((op[0] == '^' || op[0] == ',') && parameter.operand.empty()) return cased(value, op[0] == '^', op.size() > 1);
  if (op == ":") {
    const std::size_t colon = parameter.operand.find(':');
    const auto from = number(parameter.operand.substr(0, colon), line_);
    const auto count = colon == std::string::npos ? std::optional<std::int64_t>(value.size())
                                                  : number(parameter.operand.substr(colon + 1), line_);
    if (from && count && *from >= 0 && *count >= 0)
      return value.substr(std::min<std::size_t>(static_cast<std::size_t>(*from), value.size()),
                          static_cast<std::size_t>(*count));
  }
  return unknown(fmt::format("${{{}}}, an expansion that is not understood", parameter.whole));
}

/// Adds ${name[@]} and its kind; returns whether the parameter is one.
bool Expander::add_whole_array(const Parameter& parameter, bool quoted) {
  if (parameter.index != "@" && parameter.index != "*") return false;
  const std::vector<Text>* items = array_of(parameter.name);
  if (parameter.length) {
    bool known = items != nullptr;
    for (std::size_t i = 0; known && i < items->size(); ++i) known = is_known((*items)[i].text);
    add(known ? std::to_string(items->size()) : unknown(fmt::format("the size of {}", parameter.name)), quoted);
  } else if (parameter.indirect ||
             (!parameter.operation.empty() && items != nullptr && !items->empty() && parameter.operation != "+" &&
              parameter.operation != "-" && parameter.operation != ":-")) {
    add(unknown(fmt::format("${{{}}}, an expansion that is not understood", parameter.whole)), quoted);
  } else if (items == nullptr && parameter.operation.empty()) {
    add(scalar(parameter.name), quoted);
  } else if (parameter.operation == "+" || parameter.operation == ":+") {
    if (items != nullptr && !items->empty()) expand(parameter.operand, quoted);
  } else if (items == nullptr || items->empty()) {
    if (!parameter.operation.empty()) expand(parameter.operand, quoted);
  } else {
    add_all(std::vector<Text>(*items), quoted, quoted && parameter.index == "*");
  }
  return true;
}

void Expander::expand_braced(const std::string& content, bool quoted) {
  const auto parameter = parse(content);
  if (++depth_ > kMaxDepth) throw core::InputError("expansions nest too deep", *file_, line_);
  if (!parameter) {
    add(unknown(fmt::format("${{{}}}, an expansion that is not understood", content)), quoted);
  } else if (!add_whole_array(*parameter, quoted)) {
    const std::string value = value_of(*parameter);
    if (parameter->length)
      add(is_known(value) ? std::to_string(value.size()) : unknown(why_unknown(value)), quoted);
    else
      add(operated(*parameter, value), quoted);
  }
  --depth_;
}

}  // namespace manyworlds::experiments::shell
