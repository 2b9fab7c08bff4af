// The YAML reader: places, and everything it refuses.
#include <catch2/catch.hpp>

#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"

using namespace manyworlds;
using experiments::import::Node;
using experiments::import::parse_yaml;

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_yaml(text, "f.yaml");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

core::OptionValue value_of(const std::string& text, core::OptionInfo::Kind kind, const std::string& unit) {
  core::OptionInfo info;
  info.kind = kind;
  info.unit = unit;
  return experiments::import::read_value(parse_yaml(text, "f.yaml"), info, "key");
}
std::int64_t whole(const std::string& text, const std::string& unit) {
  return std::get<std::int64_t>(value_of(text, core::OptionInfo::Kind::integer, unit));
}
double broken(const std::string& text, const std::string& unit) {
  return std::get<double>(value_of(text, core::OptionInfo::Kind::real, unit));
}

}  // namespace

TEST_CASE("a document keeps the line of every node") {
  const Node root = parse_yaml("a: 1\nb:\n  c: [x,\n      y]\n", "f.yaml");
  REQUIRE(root.find("a")->line == 1);
  REQUIRE(root.find("b")->find("c")->items.at(1).line == 4);
  REQUIRE(root.entries.at(1).line == 2);
}

TEST_CASE("broken YAML names its line") {
  REQUIRE(error_of("a: 1\nb: [1, 2\nc: 3\n").substr(0, 7) == "f.yaml:");
  REQUIRE_THAT(error_of("a: 1\n b: 2\n"), Catch::StartsWith("f.yaml:2: bad YAML"));
  REQUIRE_THAT(error_of(""), Catch::Contains("empty"));
}

TEST_CASE("a repeated key names both lines") {
  REQUIRE_THAT(error_of("a: 1\nb: 2\na: 3\n"),
               Catch::Equals("f.yaml:3: key 'a' is repeated (first on line 1); keep one"));
}

TEST_CASE("keys and values of several lines are told on one") {
  const Node root = parse_yaml("[Swi\n\n\ntch]", "f.yaml");
  REQUIRE(root.items.at(0).text == "Swi\n\ntch");
  REQUIRE_THROWS_WITH(root.items.at(0).fail("not " + describe(root.items.at(0))),
                      "f.yaml:1: not 'Swi\\u000a\\u000atch'");
  REQUIRE(parse_yaml("\"a\\nb\": 1", "f.yaml").entries.at(0).key == "a\\u000ab");
}

TEST_CASE("an alias stands for its value, and a billion laughs are refused before they are told") {
  const Node root = parse_yaml("a: &x [1, 2]\nb: *x\n", "f.yaml");
  REQUIRE(root.find("b")->items.size() == 2);
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("{}*a{}", j ? ", " : "", i - 1);
    bomb += "]\n";
  }
  REQUIRE_THAT(error_of(bomb), Catch::Contains("aliases grow the document") && Catch::StartsWith("f.yaml:6:"));
  REQUIRE_THAT(error_of("a: &x [1, *x]\n"), Catch::Contains("inside what it refers to"));
}

TEST_CASE("what is kept for anchors counts as much as what aliases repeat, and a long text as several values") {
  // 60 anchors around one list, each of which keeps it: 61 times 10,000 values are beyond 500,000.
  const auto nested = [](int anchors, int values) {
    std::string text;
    for (int i = 0; i < anchors; ++i) text += fmt::format("&a{} [", i);
    for (int i = 0; i < values; ++i) text += "1,";
    return text + std::string(static_cast<std::size_t>(anchors), ']');
  };
  CHECK_THAT(error_of(nested(60, 10'000)), Catch::Contains("anchors grow the document beyond 500000 values"));
  CHECK(error_of(nested(60, 8'000)) == "(no error)");
  // Each alias is a copy of 1 MB.
  std::string copies = "a: &a " + std::string(1'000'000, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) copies += "*a,";
  CHECK_THAT(error_of(copies + "]\n"), Catch::Contains("aliases grow the document beyond"));
}

TEST_CASE("a file may have 500,000 values and a million signs, so that its tokens and tree need little memory") {
  const auto repeated = [](const char* text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  CHECK(error_of(repeated("- 1\n", 499'999)) == "(no error)");  // and the list itself
  CHECK_THAT(error_of(repeated("- 1\n", 500'001)), Catch::StartsWith("f.yaml:500001: more than 500000 values"));
  for (const char* one : {"[", "{", "[],", "1,", "? ", "&a ", "*a,", "''", "! ", ": "}) {
    CAPTURE(one);
    CHECK_THAT(error_of("[" + repeated(one, 1'000'000)), Catch::Contains("more than 1000000 commas, brackets"));
  }
}

TEST_CASE("nesting is allowed to 64 levels and no further") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  REQUIRE(error_of(nested(64)) == "(no error)");
  REQUIRE_THAT(error_of(nested(65)), Catch::Contains("deeper than 64"));
  REQUIRE_THAT(error_of(nested(100'000)), Catch::StartsWith("f.yaml:1:"));
}

TEST_CASE("bytes that are no text, second documents, tags and huge files are refused") {
  REQUIRE_THAT(error_of("a: 1\nb: \xff\n"), Catch::StartsWith("f.yaml:2: byte 0xff"));
  REQUIRE_THAT(error_of(std::string("a: \0", 4)), Catch::Contains("0x00"));
  REQUIRE_THAT(error_of("a: \xed\xa0\x80\n"), Catch::Contains("0xed"));  // a surrogate
  REQUIRE_THAT(error_of("a: 1\n---\nb: 2\n"), Catch::StartsWith("f.yaml:2: a second document"));
  REQUIRE_THAT(error_of("a: !!binary xx\n"), Catch::Contains("tag"));
  REQUIRE_THAT(error_of(std::string((8u << 20) + 1, '#')), Catch::Contains("larger than"));
}

TEST_CASE("sizes and times take suffixes and convert exactly") {
  REQUIRE(whole("80GiB", "bytes") == 80LL * 1024 * 1024 * 1024);
  REQUIRE(whole("4KiB", "bytes") == 4096);
  REQUIRE(whole("1.5KiB", "bytes") == 1536);
  REQUIRE(whole("64KB", "bytes") == 64'000);
  REQUIRE(whole("5ms", "ps") == 5'000'000'000);
  REQUIRE(whole("100us", "ps") == 100'000'000);
  REQUIRE(whole("0.5 ns", "ps") == 500);
  REQUIRE(whole("7", "bytes") == 7);
  REQUIRE(broken("500ns", "us") == 0.5);
  REQUIRE(broken("80GiB", "GiB") == 80.0);
  REQUIRE(whole("1G", "bytes") == 1LL << 30);
  REQUIRE(broken("400G", "Gb/s") == 400.0);
  REQUIRE(broken("0.4 Tbps", "Gb/s") == 400.0);
}

TEST_CASE("values that are no numbers of the option's kind are refused") {
  for (const char* bad : {"1.3", "1e3", "0x10", "ten", "'8'", "[1]", "99999999999999999999", "8GiB", "~", "true"}) {
    CAPTURE(bad);
    REQUIRE_THROWS_AS(whole(bad, ""), core::InputError);
  }
  for (const char* bad : {".nan", "nan", "inf", "-inf", ".inf", "1e999", "1,5", "1.5x"}) {
    CAPTURE(bad);
    REQUIRE_THROWS_AS(broken(bad, ""), core::InputError);
  }
  for (const char* bad : {"0.3B", "9000000TiB00", "5ms", "99999999TiB", "1.2.3KiB", "KiB"}) {
    CAPTURE(bad);
    REQUIRE_THROWS_AS(whole(bad, "bytes"), core::InputError);
  }
}

TEST_CASE("names have the spellings that frameworks give them") {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::text;
  const auto read = [&](const std::string& text, std::vector<std::string> choices) {
    info.choices = std::move(choices);
    return std::get<std::string>(experiments::import::read_value(parse_yaml(text, "x.yaml"), info, "key"));
  };
  CHECK(read("rope", {"learned", "rotary"}) == "rotary");
  CHECK(read("RMSNorm", {"layer_norm", "rms_norm"}) == "rms_norm");
  CHECK(read("SwiGLU", {"gelu", "swiglu"}) == "swiglu");
  CHECK_THROWS_AS(read("ropes", {"learned", "rotary"}), core::InputError);
}

TEST_CASE("a node on one line is read back as the same tree") {
  const auto same = [](const auto& self, const Node& a, const Node& b) -> bool {
    if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
        a.entries.size() != b.entries.size())
      return false;
    for (std::size_t i = 0; i < a.items.size(); ++i)
      if (!self(self, a.items[i], b.items[i])) return false;
    for (std::size_t i = 0; i < a.entries.size(); ++i)
      if (a.entries[i].key != b.entries[i].key || !self(self, a.entries[i].value, b.entries[i].value)) return false;
    return true;
  };
  for (const char* text :
       {"8", "11+11+5", "-3", "1e-9", "true", "\"8\"", "\"a, b\"", "'it''s'", "\"line\\nend \\\\ \\\"x\\\"\"",
        "\" x \"", "\"\"", "{fat_tree: {leaf_hosts: 8, oversubscription: 4}}",
        "[1, [2, {a: ~}], \"#no\", \"x: y\", x:y]", "{like: gpt3-1.3b, \"odd: key\": [1]}", "rank major", "\"%odd\"",
        "40 Gbps", "\"- x\""}) {
    const Node node = parse_yaml(text, "f.yaml");
    const std::string line = experiments::import::flow_text(node);
    CAPTURE(text, line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(same(same, parse_yaml(line, "g.yaml"), node));
  }
  CHECK(experiments::import::flow_text(parse_yaml("a: {b: [1, 2+3]}\nc: x y\n", "f.yaml")) ==
        "{a: {b: [1, 2+3]}, c: x y}");
  CHECK(experiments::import::flow_text(parse_yaml("\"8\"", "f.yaml")) == "\"8\"");  // a text, no number
}
