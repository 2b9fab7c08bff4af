// The language of conditions: whatever is typed is a value or a message, never a crash.
#include "experiments/tree/expression.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <random>

#include "core/base/error.hpp"

using namespace manyworlds;
using experiments::Expression;
using experiments::ExpressionName;

namespace {

experiments::import::Node node_of(const std::string& text) {
  experiments::import::Node node;
  node.kind = experiments::import::Node::Kind::scalar;
  node.text = text;
  node.file = std::make_shared<const std::string>("test");
  return node;
}

ExpressionName resolve(const std::string& name, const experiments::import::Node& at) {
  if (name == "tp" || name == "a.pp") return {name, ExpressionName::Kind::number, ""};
  if (name == "memory") return {name, ExpressionName::Kind::number, "bytes"};
  if (name == "on") return {name, ExpressionName::Kind::boolean, ""};
  if (name == "fabric") return {name, ExpressionName::Kind::text, ""};
  at.fail("no name '" + name + "'");
}

core::OptionValue value_of(const ExpressionName& name) {
  if (name.kind == ExpressionName::Kind::text) return std::string("fat_tree");
  if (name.kind == ExpressionName::Kind::boolean) return true;
  return name.path == "memory" ? 42.0 * (1ull << 30) : name.path == "tp" ? 8.0 : 2.0;
}

bool holds(const std::string& text) {
  const Expression expression(node_of(text), resolve);
  std::vector<core::OptionValue> values;
  for (const ExpressionName& name : expression.names()) values.push_back(value_of(name));
  return expression.holds(values);
}

}  // namespace

TEST_CASE("expressions have the usual precedence, units of their names and texts with or without quotes") {
  CHECK(holds("tp * a.pp == 16 and tp + a.pp * 2 == 12"));
  CHECK_FALSE(holds("tp < 8 or a.pp > 2 and on"));
  CHECK(holds("(tp < 8 or a.pp == 2) and on"));
  CHECK(holds("memory == 42GiB and memory > 41.5 GiB and memory - 2GiB < 42e9 + 2e9"));
  CHECK(holds("fabric == fat_tree and fabric != 'rail_only' and \"fat_tree\" == fabric"));
  CHECK(holds("(fabric==fat_tree)"));
  CHECK(holds("max(tp, a.pp) == 8 and -a.pp < 0 and 2^a.pp == 4"));
}

TEST_CASE("a wrong expression says what is wrong") {
  const auto message = [](const std::string& text) {
    try {
      holds(text);
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message("tp <"), Catch::Contains("a value is missing at its end"));
  CHECK_THAT(message("tp < 3 and and on"), Catch::Contains("a value is missing before 'and'"));
  CHECK_THAT(message("tp 3"), Catch::Contains("an operator is missing before '3'"));
  CHECK_THAT(message("tp = 3"), Catch::Contains("'==' compares"));
  CHECK_THAT(message("not on"), Catch::Contains("'not' is no operator"));
  CHECK_THAT(message("fabric < fat_tree"), Catch::Contains("== and != only"));
  CHECK_THAT(message("3GiB < memory"), Catch::Contains("no name stands before it"));
  CHECK_THAT(message("tp + 3"), Catch::Contains("true or false"));
  CHECK_THAT(message("(tp < 3"), Catch::Contains("not closed"));
  CHECK_THAT(message("1 < 2"), Catch::Contains("names no key"));
}

TEST_CASE("20,000 drawn expressions are values or messages") {
  constexpr std::array kTokens{"tp",  "a.pp",  "memory", "on", "fabric", "3",   "4.5",      "80GiB", "1e3",
                               "'a'", "\"b\"", "and",    "or", "true",   "min", "sqrt",     "(",     ")",
                               ",",   "+",     "-",      "*",  "/",      "==",  "!=",       "<",     "<=",
                               ">",   "&&",    "||",     "^",  "%",      " ",   "fat_tree", "not",   "!"};
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t token = 0, count = 1 + random() % 9; token < count; ++token)
      text += std::string(kTokens[random() % kTokens.size()]) + (random() % 2 == 0 ? " " : "");
    try {
      holds(text);
      ++accepted;
    } catch (const core::InputError&) {
    }
  }
  CHECK(accepted > 50);
}
