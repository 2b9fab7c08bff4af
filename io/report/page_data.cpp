#include "io/report/page_data.hpp"

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "io/log/little_endian.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxCodes = 65'536;

/// Returns a value as a map key: doubles by their bits, with all NaNs equal.
std::uint64_t bits_of(double value) {
  if (std::isnan(value)) value = std::nan("");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
const std::string& bits_of(const std::string& value) {
  return value;
}
std::uint64_t bits_of(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

/// Adds `values` and `codes` to `to`; returns false if there are more than kMaxCodes distinct values.
template <class T>
bool add_codes(const std::vector<T>& values, Json& to) {
  std::unordered_map<std::decay_t<decltype(bits_of(values[0]))>, std::uint32_t> known;
  std::vector<std::uint32_t> codes;
  Json distinct = Json::array();
  for (const T& value : values) {
    const auto [at, is_new] = known.try_emplace(bits_of(value), static_cast<std::uint32_t>(known.size()));
    if (is_new && known.size() > kMaxCodes) return false;
    if (is_new) distinct.push_back(value);
    codes.push_back(at->second);
  }
  std::string bytes;
  for (const std::uint32_t code : codes) {
    if (known.size() <= 256)
      put_little_endian(bytes, static_cast<std::uint8_t>(code));
    else
      put_little_endian(bytes, static_cast<std::uint16_t>(code));
  }
  to["values"] = std::move(distinct);
  to["codes"] = base64(bytes);
  return true;
}

}  // namespace

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[group >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

std::string packed_rows(const std::vector<std::size_t>& rows) {
  std::string bytes;
  for (const std::size_t row : rows) put_little_endian(bytes, static_cast<std::uint32_t>(row));
  return base64(bytes);
}

nlohmann::ordered_json packed_column(const Column& column) {
  Json result{{"name", column.name},
              {"unit", column.unit},
              {"description", column.description},
              {"share", is_share(column.name)},
              {"text", column.is_text()}};
  if (std::visit([&](const auto& values) { return add_codes(values, result); }, column.values)) return result;
  if (column.is_text()) {
    result["texts"] = std::get<std::vector<std::string>>(column.values);
    return result;
  }
  std::string bytes;
  for (std::size_t row = 0; row < column.rows(); ++row) {
    const auto single = static_cast<float>(column.number_at(row));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &single, sizeof bits);
    put_little_endian(bytes, bits);
  }
  result["singles"] = base64(bytes);
  return result;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string safe;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace manyworlds::io
