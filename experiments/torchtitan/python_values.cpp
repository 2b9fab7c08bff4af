#include "experiments/torchtitan/python_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "core/base/error.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

constexpr int kMaxCalls = 50;                // of functions of the file, one inside the other
constexpr std::int64_t kMaxSteps = 200'000;  // values, in all

Value unknown(const std::string& why, int line) {
  Value value;
  value.kind = ValueKind::unknown, value.text = why, value.line = line;
  return value;
}

Value integer(std::int64_t number, int line, ValueKind kind = ValueKind::integer) {
  Value value;
  value.kind = kind, value.integer = number, value.line = line;
  return value;
}

Value number_of(const std::string& text, int line) {
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc() && end == text.data() + text.size()) return integer(whole, line);
  Value value;
  value.kind = ValueKind::real, value.text = text, value.line = line;
  return value;
}

/// "Trainer.Config" of an expression of names and members; empty if it is another.
std::string dotted(const Expression& one) {
  if (one.kind == ExpressionKind::name) return one.text;
  if (one.kind != ExpressionKind::attribute) return "";
  const std::string base = dotted(one.parts.front());
  return base.empty() ? "" : base + "." + one.text;
}

/// Returns whether a value counts as true; none if it is not known.
std::optional<bool> truth(const Value& value) {
  switch (value.kind) {
    case ValueKind::none:
      return false;
    case ValueKind::boolean:
    case ValueKind::integer:
      return value.integer != 0;
    case ValueKind::text:
      return !value.text.empty();
    case ValueKind::list:
      return !value.items.empty();
    default:
      return std::nullopt;
  }
}

bool is_number(const Value& value) {
  return value.kind == ValueKind::integer || value.kind == ValueKind::boolean;
}

/// Computes with whole numbers; none where the result is no whole number, or too large.
std::optional<std::int64_t> computed(const std::string& symbol, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (symbol == "+") return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (symbol == "-") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (symbol == "*") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (a < 0 || b < 0) return std::nullopt;
  if (symbol == "//") return b == 0 ? std::nullopt : std::optional(a / b);
  if (symbol == "%") return b == 0 ? std::nullopt : std::optional(a % b);
  if (symbol != "**" || b > 62) return std::nullopt;
  result = 1;
  for (std::int64_t i = 0; i < b; ++i)
    if (__builtin_mul_overflow(result, a, &result)) return std::nullopt;
  return result;
}

/// Returns how many values a value has inside, itself included.
std::int64_t size_of(const Value& value) {
  std::int64_t size = 1;
  for (const Value& item : value.items) size += size_of(item);
  for (const auto& [name, field] : value.fields) size += size_of(field);
  return size;
}

bool same(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return a.integer == b.integer;
  return a.kind == b.kind && a.text == b.text;
}

}  // namespace

struct PythonFile::Budget {
  std::int64_t steps = 0;
  int calls = 0;
};

const Value* Value::field(const std::string& name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : &found->second;
}

PythonFile::PythonFile(std::string_view source, std::string file)
    : file_(std::move(file)), statements_(parse_python(source, file_)) {
  Budget budget;
  for (const Statement& one : statements_)
    if (one.kind == StatementKind::assignment && one.target.kind == ExpressionKind::name)
      globals_[one.target.text] = evaluate(one.value, globals_, budget);
}

void PythonFile::fail(int line, const std::string& what) const {
  throw core::InputError(what, file_, line);
}

std::vector<std::string> PythonFile::functions() const {
  std::vector<std::string> names;
  for (const Statement& one : statements_)
    if (one.kind == StatementKind::function && one.parameters.size() == one.defaults.size() &&
        !one.text.starts_with('_'))
      names.push_back(one.text);
  return names;
}

/// Returns the last function of that name, as Python does.
const Statement* PythonFile::find(const std::string& function) const {
  const auto found = std::find_if(statements_.rbegin(), statements_.rend(), [&](const Statement& one) {
    return one.kind == StatementKind::function && one.text == function;
  });
  return found == statements_.rend() ? nullptr : &*found;
}

Value PythonFile::returned(const std::string& function) const {
  const Statement* found = find(function);
  if (found == nullptr || found->parameters.size() != found->defaults.size())
    fail(found == nullptr ? 0 : found->line, fmt::format("'{}' is no function without arguments", function));
  Budget budget;
  return call(*found, budget);
}

Value PythonFile::call(const Statement& function, Budget& budget) const {
  if (++budget.calls > kMaxCalls) fail(function.line, fmt::format("'{}' calls itself", function.text));
  Names names = globals_;
  budget.steps += static_cast<std::int64_t>(globals_.size());
  for (std::size_t i = 0; i < function.parameters.size(); ++i)
    names[function.parameters[i]] = evaluate(function.defaults[i], globals_, budget);
  for (const Statement& one : function.body) {
    if (one.kind == StatementKind::assignment) {
      assign(one.target, evaluate(one.value, names, budget), names);
    } else if (one.kind == StatementKind::returned) {
      Value value = evaluate(one.value, names, budget);
      --budget.calls;
      return value;
    } else if (one.kind == StatementKind::function) {
      names[one.text] = unknown(fmt::format("the function {} inside {}", one.text, function.text), one.line);
    } else if (one.kind == StatementKind::other ||
               (one.kind == StatementKind::evaluation && one.value.kind != ExpressionKind::text)) {
      fail(one.line, fmt::format("'{}' of {} is not followed: a configuration is read from assignments and the "
                                 "constructor calls that it returns",
                                 one.text.empty() ? "a call" : one.text, function.text));
    }
  }
  --budget.calls;
  return {};
}

void PythonFile::assign(const Expression& target, Value value, Names& names) const {
  std::vector<std::string> path;
  const Expression* at = &target;
  for (; at->kind == ExpressionKind::attribute; at = &at->parts.front()) path.push_back(at->text);
  if (at->kind != ExpressionKind::name)
    fail(target.line, "this assignment is not followed; names and their members are");
  Value* place = &names[at->text];
  for (auto member = path.rbegin(); member != path.rend(); ++member) {
    if (place->kind == ValueKind::unknown)
      fail(target.line, fmt::format("'{}' is set in what follows from {}", *member, place->text));
    if (place->kind != ValueKind::object) *place = Value(), place->kind = ValueKind::object, place->line = target.line;
    place = &place->fields[*member];
  }
  *place = std::move(value);
}

Value PythonFile::evaluate(const Expression& one, const Names& names, Budget& budget) const {
  if (++budget.steps > kMaxSteps) fail(one.line, "the configuration has more values than can be intended");
  Value value;
  value.line = one.line;
  switch (one.kind) {
    case ExpressionKind::number:
      return number_of(one.text, one.line);
    case ExpressionKind::text:
      value.kind = ValueKind::text, value.text = one.text;
      return value;
    case ExpressionKind::constant:
      return one.text == "None" ? value : integer(one.text == "True" ? 1 : 0, one.line, ValueKind::boolean);
    case ExpressionKind::name: {
      const auto found = names.find(one.text);
      if (found == names.end()) return unknown(one.text, one.line);
      budget.steps += size_of(found->second);
      return found->second;
    }
    case ExpressionKind::list:
      value.kind = ValueKind::list;
      for (const Expression& item : one.parts) value.items.push_back(evaluate(item, names, budget));
      return value;
    case ExpressionKind::call:
      return evaluate_call(one, names, budget);
    case ExpressionKind::attribute: {
      const Value base = evaluate(one.parts.front(), names, budget);
      const Value* member = base.kind == ValueKind::object ? base.field(one.text) : nullptr;
      const std::string whole = dotted(one);
      return member != nullptr ? *member : unknown(whole.empty() ? one.text : whole, one.line);
    }
    case ExpressionKind::unary: {
      const Value operand = evaluate(one.parts.front(), names, budget);
      const auto holds = truth(operand);
      if (one.text == "not" && holds) return integer(*holds ? 0 : 1, one.line, ValueKind::boolean);
      if (one.text == "-" && operand.kind == ValueKind::integer &&
          operand.integer != std::numeric_limits<std::int64_t>::min())
        return integer(-operand.integer, one.line);
      if (one.text == "-" && operand.kind == ValueKind::real) return number_of("-" + operand.text, one.line);
      return operand.kind == ValueKind::unknown ? operand : unknown("'" + one.text + "'", one.line);
    }
    case ExpressionKind::binary:
      return evaluate_binary(one, names, budget);
    case ExpressionKind::mapping:
      return unknown("a mapping", one.line);
    case ExpressionKind::other:
      return unknown(one.text, one.line);
  }
  return value;
}

Value PythonFile::evaluate_call(const Expression& one, const Names& names, Budget& budget) const {
  const std::string callee = dotted(one.parts.front());
  if (callee.empty()) return unknown("a call", one.line);
  if (const Statement* own = find(callee); own != nullptr && names.count(callee) == 0) {
    if (one.parts.size() > 1 || own->parameters.size() != own->defaults.size())
      return unknown(fmt::format("{}(…), a function with arguments", callee), one.line);
    return call(*own, budget);
  }
  Value value;
  value.kind = ValueKind::object, value.text = callee, value.line = one.line;
  for (std::size_t i = 1; i < one.parts.size(); ++i) {
    const std::string& keyword = one.keywords[i - 1];
    Value argument = evaluate(one.parts[i], names, budget);
    if (keyword == "*") return unknown(fmt::format("the arguments with * of {}", callee), one.line);
    if (keyword.empty()) {
      value.items.push_back(std::move(argument));
      continue;
    }
    argument.line = one.parts[i].line;
    value.fields[keyword] = std::move(argument);
  }
  return value;
}

Value PythonFile::evaluate_binary(const Expression& one, const Names& names, Budget& budget) const {
  const Value a = evaluate(one.parts[0], names, budget);
  const auto holds = truth(a);
  if (one.text == "and" || one.text == "or") {
    if (holds && *holds == (one.text == "or")) return a;
    Value b = evaluate(one.parts[1], names, budget);
    return holds ? b : a.kind == ValueKind::unknown ? a : unknown("'" + one.text + "'", one.line);
  }
  const Value b = evaluate(one.parts[1], names, budget);
  for (const Value* side : {&a, &b})
    if (side->kind == ValueKind::unknown) return *side;
  if ((one.text == "in" || one.text == "not in") && b.kind == ValueKind::list) {
    const bool found = std::any_of(b.items.begin(), b.items.end(), [&](const Value& item) { return same(a, item); });
    return integer(found == (one.text == "in") ? 1 : 0, one.line, ValueKind::boolean);
  }
  if (one.text == "==" || one.text == "is" || one.text == "!=" || one.text == "is not") {
    if (a.kind == ValueKind::list || a.kind == ValueKind::object || a.kind == ValueKind::real)
      return unknown("a comparison", one.line);
    const bool equal = same(a, b);
    return integer(equal == (one.text == "==" || one.text == "is") ? 1 : 0, one.line, ValueKind::boolean);
  }
  if (is_number(a) && is_number(b))
    if (const auto result = computed(one.text, a.integer, b.integer)) return integer(*result, one.line);
  return unknown("'" + one.text + "'", one.line);
}

}  // namespace manyworlds::experiments::jobs::torchtitan
