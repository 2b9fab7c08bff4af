// JSON as profilers write it, made JSON: what is replaced, that nothing else is, and that pieces change nothing.
#include "experiments/kineto/mended_json.hpp"

#include <nlohmann/json.hpp>

#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/kineto_traces.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments;

namespace {

/// Mends a text that is given in pieces of so many bytes.
std::string mended(const std::string& text, std::size_t piece, kineto::Mended* counts = nullptr) {
  kineto::JsonMender mender;
  std::string to;
  for (std::size_t at = 0; at < text.size(); at += piece) mender.add(std::string_view(text).substr(at, piece), to);
  mender.finish(to);
  if (counts != nullptr) *counts = mender.mended();
  return to;
}

}  // namespace

TEST_CASE("what JSON does not have is replaced, and counted") {
  struct Case {
    std::string given, expected;
    std::int64_t values, characters;
  };
  const std::vector<Case> cases{
      {R"({"a": NaN, "b": -nan,"c":inf})", R"({"a":null, "b": null,"c":null})", 3, 0},
      {R"([Infinity,-Infinity, N/A,-inf])", R"([null    ,null     ,null,null])", 4, 0},
      {"{\"a\": \"x\xff"
       "b\xe2\x82"
       "c\xc3\"}",
       R"({"a": "x?b??c?"})", 0, 4},
      {"[\"\xed\xa0\x80\", \"\xf5\", \"\xc0\xaf\"]", R"(["???", "?", "??"])", 0, 6},  // a surrogate, beyond, too long
      {"{\"a\": \"x\ty\nz\"}", R"({"a": "x y z"})", 0, 2},
      {R"({"a": "C:\Users\me\new\u12"})", "{\"a\": \"C:/Users/me\\new/u12\"}", 0, 3},
      {"\xef\xbb\xbf{}", "   {}", 0, 0}};
  for (const Case& one : cases)
    for (const std::size_t piece : {std::size_t{1000}, std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      if (piece < 3 && one.given.starts_with("\xef\xbb\xbf")) continue;
      kineto::Mended counts;
      const std::string text = mended(one.given, piece, &counts);
      INFO(one.given);
      CHECK(text == one.expected);
      CHECK(nlohmann::json::parse(text) == nlohmann::json::parse(one.expected));
      CHECK(counts.values == one.values);
      CHECK(counts.characters == one.characters);
    }
}

TEST_CASE("what is JSON stays as it is, whatever pieces it comes in") {
  const std::string text =
      "{\"true\": [true, false, null, -1.5e-10, 0, 1E+5, 12345678901234567890], \"t\\\"\\\\\\u20ac\\n\": \"NaN inf "
      "N/A \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\r\n\t\"x\": {}}\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    kineto::Mended counts;
    CHECK(mended(text, piece, &counts) == text);
    CHECK(counts.values + counts.characters == 0);
  }
  CHECK(mended("{\"a\": \"torn \\", 4) == "{\"a\": \"torn \\");
  CHECK(mended("[tru", 2) == "[tru");
}

TEST_CASE("a trace with numbers that are none, and texts that are no UTF-8, is read as one without") {
  const auto trace = [](const std::string& occupancy, const std::string& name) {
    TraceText text;
    text.launched(name, 0, 10, 100, 7, 1, 1, R"(,"est. achieved occupancy %": )" + occupancy);
    text.launched("b", 20, 112, 50, 20, 2);
    return text.text();
  };
  const programs::Imported plain = import_text({trace("30", "a?")}), odd = import_text({trace("inf", "a\xfe")});
  CHECK(odd.recorded_us == plain.recorded_us);
  CHECK(odd.programs.names == plain.programs.names);
  CHECK(step_us(odd.programs) == Approx(step_us(plain.programs)));
  CHECK(account(odd).find("1 values are none that JSON has (NaN, inf, N/A)") != std::string::npos);
  CHECK(account(odd).find("1 characters of texts are no UTF-8 or not escaped") != std::string::npos);
  CHECK(account(plain).find("JSON") == std::string::npos);
}

TEST_CASE("a trace behind a mark of its order of bytes is one") {
  TraceText text;
  text.launched("a", 0, 10, 100, 7, 1);
  const std::string marked = "\xef\xbb\xbf" + text.text();
  CHECK(kineto::is_kineto_trace(marked));
  CHECK(import_text({marked}).recorded_us == 110);
}
