// Tables as comma-separated values.
#include "io/results/csv.hpp"

#include <cstdlib>
#include <limits>

#include <catch2/catch.hpp>

using namespace manyworlds::io;

TEST_CASE("a table is a line of names and a line for each row, and what is no number is empty") {
  const Table table{{{"id", "", "", std::vector<std::int64_t>{0, -1}},
                     {"step_time_s", "s", "", std::vector<double>{0.1, std::numeric_limits<double>::quiet_NaN()}},
                     {"status", "", "", std::vector<std::string>{"ran", ""}}}};
  CHECK(csv(table) == "id,step_time_s,status\n0,0.1,ran\n-1,,\n");
  CHECK(csv(Table{}) == "\n");
}

TEST_CASE("texts that could be mistaken for more than one field are quoted, as RFC 4180 says") {
  const Table table{{{"a,b", "", "", std::vector<std::string>{"x,y", "say \"no\"", "two\nlines", "plain – text"}}}};
  CHECK(csv(table) == "\"a,b\"\n\"x,y\"\n\"say \"\"no\"\"\"\n\"two\nlines\"\nplain – text\n");
}

TEST_CASE("texts and names of columns that a spreadsheet would compute are told as text, numbers as numbers") {
  const Table table{{{"=a", "", "", std::vector<std::string>{"=1+1", "@x"}},
                     {"x", "", "", std::vector<double>{-1.5, -2}},
                     {"n", "", "", std::vector<std::int64_t>{-1, 0}}}};
  CHECK(csv(table) == "'=a,x,n\n'=1+1,-1.5,-1\n'@x,-2,0\n");
}

TEST_CASE("numbers are told so exactly that they can be read back") {
  const double third = 1.0 / 3, tiny = std::numeric_limits<double>::denorm_min();
  const Table table{{{"x", "", "", std::vector<double>{third, tiny, 1e300}}}};
  const std::string text = csv(table);
  std::size_t at = 2;
  for (const double value : {third, tiny, 1e300}) {
    CHECK(std::strtod(text.c_str() + at, nullptr) == value);
    at = text.find('\n', at) + 1;
  }
}
