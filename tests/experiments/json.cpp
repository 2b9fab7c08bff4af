// JSON that others may have made: its size, its depth, and values of the types that are asked for.
#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"
#include "experiments/text/json_syntax.hpp"
#include "experiments/tree/json_tree.hpp"

using namespace manyworlds;
using Catch::Contains;
using Catch::StartsWith;
using experiments::import::JsonView;
using experiments::import::parse_json;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("JSON is read to 64 levels and a given size, whatever its texts hold") {
  CHECK(parse_json(nested(64), "f.json").is_array());
  CHECK_THROWS_WITH(parse_json(nested(65), "f.json"), Contains("f.json: nested deeper than 64"));
  CHECK_THROWS_WITH(parse_json(nested(1'000'000), "f.json"), Contains("f.json: nested deeper than 64"));
  CHECK_THROWS_WITH(parse_json("{\"a\": " + nested(64) + "}", "f.json"), Contains("nested deeper"));
  const std::string brackets = "\"\\\"" + std::string(1'000, '[') + "\"";
  CHECK(parse_json(brackets, "f.json").get<std::string>().size() == 1'001);
  CHECK_THROWS_WITH(parse_json("[1, 2, 3]", "f.json", 8), Contains("larger than 8 bytes"));
  for (const char* bad : {"", "{", "nul", "[1,]", "1e400", "\"\xff\"", "{} {}", "\"\\ud800\""}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(parse_json(bad, "f.json"), Contains("f.json") && Contains("bad JSON") && !Contains("exception"));
  }
  CHECK_THROWS_WITH(parse_json("{\n \"a\": [1,]}", "f.json"),
                    "f.json:2:10: bad JSON: there is a comma too many before ']'");
  CHECK_THROWS_WITH(parse_json("{a: 1}", "f.json"), "f.json:1:2: bad JSON: expected a key in double quotes, not 'a'");
}

TEST_CASE("a fault in JSON is told in words, with line and column of what is wrong") {
  using Fault = std::pair<const char*, const char*>;
  for (const auto& [text, said] :
       {Fault{"{\n \"a\": 1\n \"b\": 2}",
              "3:2: bad JSON: expected ',' or '}', not a text: is a comma missing before it?"},
        Fault{"{\"a\": True}", "1:7: bad JSON: 'True' is true in JSON"},
        Fault{"{'a': 1}", "1:2: bad JSON: a key stands in double quotes"},
        Fault{"{\"a\" 1}", "1:6: bad JSON: expected ':' behind a key, not '1'"},
        Fault{"{\"\u00e4\": 1, // why\n}", "1:10: bad JSON: JSON has no comments"},
        Fault{"{\n \"a\": [1, 2", "2:12: bad JSON: the file ends, and the '[' of line 2 is not closed"},
        Fault{"{\"a\": \"b\n\"}", "1:7: bad JSON: the text that begins here is not closed"},
        Fault{"{\"a\": 1} x", "1:10: bad JSON: the document ends before 'x'"},
        Fault{"{\"a\": 1,, \"b\": 2}", "1:9: bad JSON: there is a comma too many"},
        Fault{"[01]", "1:3: bad JSON: expected ',' or ']'"}, Fault{"[1.]", "1:4: bad JSON: expected a digit"},
        Fault{"[\"C:\\dir\"]", "1:6: bad JSON: '\\' in a text is written as '\\\\'"}}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_json(text, "f.json"), StartsWith(std::string("f.json:") + said));
    CHECK_THROWS_WITH(experiments::import::parse_json_tree(text, "f.json"), StartsWith(std::string("f.json:") + said));
  }
}

TEST_CASE("a text has a fault in its syntax if and only if the parser refuses it") {
  using experiments::import::find_json_fault;
  const std::string whole = R"({"a": [1, -2.5e+3, true, null], "b": {"c": "\u00e4\n"}, "d": ""})";
  REQUIRE_FALSE(find_json_fault(whole));
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char with : {'\0', '{', ']', ',', ':', '"', '0', 'x', '\\', ' ', '-', '.'}) {
      std::string text = whole;
      with == '\0' ? void(text.erase(at, 1)) : void(text[at] = with);
      CAPTURE(text);
      CHECK(find_json_fault(text).has_value() != nlohmann::json::accept(text));
    }
}

TEST_CASE("a value is of the type that is asked for, or its name is told") {
  const auto document = parse_json(
      R"({"text": "x", "whole": 3, "minus": -1, "large": 18446744073709551615, "real": 0.5, "list": [1, 2], "yes": true,
          "nothing": null})",
      "f.json");
  const JsonView view(document);
  CHECK(view.at("text").text() == "x");
  CHECK(view.at("whole").whole() == 3);
  CHECK(view.at("minus").whole(-1) == -1);
  CHECK(view.at("whole").number() == 3.0);
  CHECK(view.at("real").number(0.5) == 0.5);
  CHECK(view.at("yes").boolean());
  CHECK(view.at("nothing").is_null());
  CHECK(view.at("list").size() == 2);
  CHECK_FALSE(view.find("absent").has_value());
  std::int64_t sum = 0;
  view.at("list").for_each([&](const JsonView& one) { sum += one.whole(); });
  CHECK(sum == 3);
  CHECK_THROWS_WITH(view.at("absent"), Contains("'the document' has no member 'absent'"));
  CHECK_THROWS_WITH(view.at("list").at("x"), Contains("'list' must be an object, not array"));
  CHECK_THROWS_WITH(view.at("text").size(), Contains("'text' must be a list, not string"));
  CHECK_THROWS_WITH(view.at("minus").whole(), Contains("'minus' must be a whole number from 0"));
  CHECK_THROWS_WITH(view.at("large").whole(), Contains("'large' must be a whole number"));
  CHECK_THROWS_WITH(view.at("real").whole(), Contains("'real' must be a whole number"));
  CHECK_THROWS_WITH(view.at("real").number(0.6), Contains("'real' must be a number of at least 0.6"));
  CHECK_THROWS_WITH(view.at("nothing").text(), Contains("'nothing' must be a text, not null"));
  CHECK_THROWS_WITH(view.at("whole").boolean(), Contains("'whole' must be true or false"));
}

TEST_CASE("the tree of a JSON document has the lines of its keys") {
  const auto root = experiments::import::parse_json_tree(
      "{\n \"a\": [1,\n  -2.5],\n \"b\":\n  {\"c\": \"x\\ny\", \"d\": null}, \"e\": true\n}", "f.json");
  CHECK(root.entries.size() == 3);
  CHECK(root.find("a")->line == 2);
  CHECK(root.find("a")->items.at(1).text == "-2.5");
  CHECK(root.find("a")->items.at(1).line == 2);  // as its list
  CHECK(root.find("b")->line == 4);
  CHECK(root.find("b")->find("c")->line == 5);
  CHECK(root.find("b")->find("c")->text == "x y");  // a message stays on one line
  CHECK(root.find("b")->find("c")->quoted);
  CHECK(root.find("b")->find("d")->kind == experiments::import::Node::Kind::null);
  CHECK_FALSE(root.find("e")->quoted);
}

TEST_CASE("what Python writes for infinite numbers is null in a tree, and nothing inside of texts") {
  using experiments::import::parse_json_tree;
  const auto root = parse_json_tree(R"({"a": Infinity, "b": [-Infinity, NaN], "c": "\"NaN"})", "f.json");
  CHECK(root.find("a")->kind == experiments::import::Node::Kind::null);
  CHECK(root.find("b")->items.size() == 2);
  CHECK(root.find("c")->text == "\"NaN");
  CHECK_THROWS_WITH(parse_json_tree("{\"a\": 1,\n\n\"a\": 2}", "f.json"),
                    "f.json:3: 'a' is given twice, first in line 1; keep one");
  CHECK_THROWS_WITH(parse_json_tree("{\n\"a\": 1e400}", "f.json"), Contains("f.json:2") && Contains("bad JSON"));
  for (const char* bad : {"", "{", "nul", "[1,]", "{} {}", "\"\\ud800\""})
    CHECK_THROWS_WITH(parse_json_tree(bad, "f.json"), Contains("bad JSON"));
  CHECK_THROWS_AS(parse_json_tree("\"\xff\"", "f.json"), core::InputError);
  CHECK_THROWS_WITH(parse_json_tree(nested(65), "f.json"), Contains("nested deeper than 64"));
}
