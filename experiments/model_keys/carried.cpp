#include "experiments/model_keys/carried.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "experiments/text/text.hpp"

namespace manyworlds::experiments::models {
namespace {

constexpr char kBetweenValues = '+';

bool is_number(std::string_view value) {
  return !value.empty() && value.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
         std::isdigit(static_cast<unsigned char>(value.back())) != 0;
}

/// Returns where the next + stands that is not an exponent's sign.
std::size_t end_of_value(std::string_view values, std::size_t begin) {
  for (std::size_t at = begin; at < values.size(); ++at) {
    const bool exponent = at > begin + 1 && (values[at - 1] == 'e' || values[at - 1] == 'E') &&
                          std::isdigit(static_cast<unsigned char>(values[at - 2])) != 0;
    if (values[at] == kBetweenValues && !exponent) return at;
  }
  return values.size();
}

}  // namespace

bool is_carried_value(std::string_view value) {
  if (value.empty()) return false;
  if (value.find(kBetweenValues) != std::string_view::npos) return is_number(value);
  return std::all_of(value.begin(), value.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-/").find(c) != std::string_view::npos;
  });
}

std::vector<CarriedArgument> carried_in(std::string_view text) {
  std::map<std::string, CarriedArgument> by_name;
  for (const std::string_view word : import::words_of(text, " ")) {
    const std::size_t equals = std::min(word.find('='), word.size());
    CarriedArgument one{std::string(word.substr(0, equals)), {}};
    if (equals < word.size()) {
      const std::string_view values = word.substr(equals + 1);
      for (std::size_t begin = 0; begin <= values.size();) {
        const std::size_t end = end_of_value(values, begin);
        if (end > begin) one.values.emplace_back(values.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    by_name[one.name] = std::move(one);
  }
  std::vector<CarriedArgument> all;
  for (auto& [name, one] : by_name) all.push_back(std::move(one));
  return all;
}

std::string carried_text(std::vector<CarriedArgument> arguments) {
  std::stable_sort(arguments.begin(), arguments.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string text;
  for (const CarriedArgument& one : arguments) {
    text += (text.empty() ? "" : " ") + one.name;
    for (std::size_t i = 0; i < one.values.size(); ++i) text += (i == 0 ? "=" : "+") + one.values[i];
  }
  return text;
}

std::string carried_over(std::string_view text, std::string_view over) {
  std::string both(text);
  both += ' ';
  both += over;
  return carried_text(carried_in(both));
}

}  // namespace manyworlds::experiments::models
