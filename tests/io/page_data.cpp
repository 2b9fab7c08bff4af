// Columns as pages hold them, read back by a plain reader.
#include "io/report/page_data.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

using namespace manyworlds::io;

namespace {

std::vector<unsigned char> bytes_of(const std::string& base64_text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> result;
  unsigned bits = 0, have = 0;
  for (const char c : base64_text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    have += 6;
    if (have < 8) continue;
    have -= 8;
    result.push_back(static_cast<unsigned char>(bits >> have));
    bits &= (1U << have) - 1;
  }
  return result;
}

nlohmann::ordered_json value_at(const nlohmann::ordered_json& column, std::size_t row) {
  const auto bytes = bytes_of(column.at("codes"));
  const bool wide = column.at("values").size() > 256;
  const std::size_t code = wide ? bytes[2 * row] + 256U * bytes[2 * row + 1] : bytes[row];
  return column.at("values").at(code);
}

}  // namespace

TEST_CASE("base64 is that of RFC 4648, section 10") {
  for (const auto& [plain, coded] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                     {"f", "Zg=="},
                                                                                     {"fo", "Zm8="},
                                                                                     {"foo", "Zm9v"},
                                                                                     {"foob", "Zm9vYg=="},
                                                                                     {"fooba", "Zm9vYmE="},
                                                                                     {"foobar", "Zm9vYmFy"}})
    CHECK(base64(plain) == coded);
  CHECK(bytes_of(packed_rows({1, 258})) == std::vector<unsigned char>{1, 0, 0, 0, 2, 1, 0, 0});
}

TEST_CASE("a column of few different values keeps them exactly") {
  const std::vector<double> values{0.1, 1e300, -0.0, std::nan(""), 0.1, 5e-324};
  const auto column = packed_column({"x_s", "s", "a figure", values});
  CHECK(column.at("values").size() == 5);
  for (std::size_t row = 0; row < values.size(); ++row) {
    const auto held = value_at(nlohmann::ordered_json::parse(column.dump()), row);
    if (std::isnan(values[row]))
      CHECK(held.is_null());
    else
      CHECK(held.get<double>() == values[row]);
  }
  std::vector<std::int64_t> integers;
  for (std::int64_t i = 0; i < 70'000; ++i) integers.push_back((i % 300) * 1'000'000'007);
  const auto wide = packed_column({"n", "", "", integers});
  for (std::size_t row = 0; row < integers.size(); row += 997)
    CHECK(value_at(wide, row).get<std::int64_t>() == integers[row]);
}

TEST_CASE("of more than 65,536 different numbers seven digits stay, and all text") {
  std::vector<double> values;
  std::vector<std::string> texts;
  for (int i = 0; i < 65'537; ++i) {
    values.push_back(1 + i * 1e-3 / 7);
    texts.push_back("text " + std::to_string(i));
  }
  const auto bytes = bytes_of(packed_column({"x", "", "", values}).at("singles"));
  REQUIRE(bytes.size() == 4 * values.size());
  for (std::size_t row = 0; row < values.size(); row += 101) {
    float single = 0;
    std::memcpy(&single, &bytes[4 * row], 4);
    CHECK(single == Approx(values[row]).epsilon(1e-7));
  }
  CHECK(packed_column({"t", "", "", texts}).at("texts").at(65'536) == "text 65536");
}

TEST_CASE("no markup can begin in a script's data, and text that is no UTF-8 does not stop it") {
  const std::string result = script_json({{"reason", "</script><!-- <script> \xff"}});
  CHECK(result.find('<') == std::string::npos);
  CHECK(nlohmann::json::parse(result).at("reason").get<std::string>().starts_with("</script><!-- <script>"));
}
