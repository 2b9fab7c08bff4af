// Tables of comma-separated values: what spreadsheets write is read back, anything else is refused with its line.
#include <catch2/catch.hpp>

#include <random>

#include "core/base/escape.hpp"
#include "experiments/text/csv.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using experiments::import::CsvTable;
using experiments::import::parse_csv;

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_csv(text, "t.csv");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace

TEST_CASE("a table's fields are found by the names of their columns") {
  const CsvTable table = parse_csv("\xEF\xBB\xBFid,tokens, speed\r\na,12,0.5\r\n\n b ,,1e3\n", "t.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].text("id") == "a");
  CHECK(table.rows[0].integer("tokens") == 12);
  CHECK(table.rows[0].real("speed") == 0.5);
  CHECK(table.rows[1].text("id") == "b");
  CHECK_FALSE(table.rows[1].given("tokens"));
  CHECK_FALSE(table.rows[1].integer("tokens").has_value());
  CHECK(table.rows[1].real("speed") == 1000);
  CHECK(table.rows[1].text("absent").empty());
  CHECK(table.rows[1].line() == 4);
}

TEST_CASE("a quoted field holds commas, quotes and ends of lines") {
  const CsvTable table = parse_csv("a,b\n\"x, \"\"y\"\"\nz\",2\n3,4\n", "t.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].text("a") == "x, \"y\"\nz");
  CHECK(table.rows[0].line() == 2);
  CHECK(table.rows[1].line() == 4);
}

TEST_CASE("a text is read as it was before it was written as a field") {
  for (const std::string text : {"=1+1", "'=1", "-x, \"y\"", "two\nlines", "-1", "it's", "@", "plain"})
    CHECK(parse_csv("name,n\n" + core::csv_field(text) + ",-1\n", "t.csv").rows.at(0).text("name") == text);
}

TEST_CASE("what is no table is refused with its line") {
  CHECK(error_of("") == "t.csv:1: the table is empty; its first line names the columns");
  CHECK(error_of("a,b\n1\n") == "t.csv:2: a row of 1 fields below 2 columns");
  CHECK(error_of("a,b\n1,2,3\n") == "t.csv:2: a row of 3 fields below 2 columns");
  CHECK(error_of("a,a\n") == "t.csv:1: column 'a' is repeated");
  CHECK(error_of("a,\n") == "t.csv:1: column 2 has no name");
  CHECK(error_of("a\n1\n\"x\n") == "t.csv:3: a quote is not closed");
  CHECK(error_of("a\n\"x\"y\n") == "t.csv:2: text follows a closing quote; a quote inside a field is written twice");
  const CsvTable table = parse_csv("n\n1.5\n1x\nnan\n", "t.csv");
  CHECK_THROWS_WITH(table.rows[0].integer("n"), "t.csv:2: n must be an integer, not '1.5'");
  CHECK_THROWS_WITH(table.rows[1].real("n"), "t.csv:3: n must be a number, not '1x'");
  CHECK_THROWS_WITH(table.rows[2].real("n"), "t.csv:4: n must be a number, not 'nan'");
}

TEST_CASE("mutated tables are read or refused with the file's name") {
  std::string text = "id,source,gpu,tp,measured_step_s,notes\n";
  for (int i = 0; i < 20; ++i) text += "r" + std::to_string(i) + ",\"a, \"\"b\"\"\",A100,8,1.25,\"x\ny\"\n";
  std::mt19937_64 random(7);
  std::size_t refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    const std::string bent = experiments::testing::mutated(text, random);
    try {
      const CsvTable table = parse_csv(bent, "t.csv");
      for (const auto& row : table.rows) row.text("notes");
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("t.csv:", 0) == 0);
    }
  }
  CHECK(refused > 300);
  CHECK(refused < 3'000);
}

TEST_CASE("a table has at most 1,000 columns and 1,000,000 fields") {
  const auto wide = [](std::size_t columns) {
    std::string text = "c0";
    for (std::size_t i = 1; i < columns; ++i) text += ",c" + std::to_string(i);
    return text + "\n";
  };
  CHECK(error_of(wide(1'000)) == "(no error)");
  CHECK_THAT(error_of(wide(1'001)), Catch::Contains("more than 1000 columns"));
  const auto high = [](std::size_t rows) {
    std::string text = "a\n";
    for (std::size_t i = 0; i < rows; ++i) text += "1\n";
    return text;
  };
  CHECK(error_of(high(1'000'000)) == "(no error)");
  CHECK_THAT(error_of(high(1'000'001)), Catch::StartsWith("t.csv:1000002: more than 1000000 rows"));
}
