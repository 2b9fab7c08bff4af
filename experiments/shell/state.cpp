#include "experiments/shell/state.hpp"

#include <algorithm>

namespace manyworlds::experiments::shell {
namespace {

bool same(const Variable& a, const Variable& b) {
  if (a.array != b.array || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (a.items[i].text != b.items[i].text) return false;
  return true;
}

Variable unknown_variable(const Variable& like, const std::string& why) {
  Place place;
  if (!like.items.empty()) place = like.items.front().place;
  return {{{unknown(why), place}}, like.array};
}

}  // namespace

std::string unknown(const std::string& why) {
  constexpr std::size_t kMaxReason = 300;
  std::string reason;
  for (const char c : why.substr(0, kMaxReason))
    if (c != kMarkBegin && c != kMarkEnd) reason.push_back(c == '\n' ? ' ' : c);
  return kMarkBegin + reason + kMarkEnd;
}

bool is_known(std::string_view text) {
  return text.find(kMarkBegin) == std::string_view::npos;
}

std::string why_unknown(std::string_view text) {
  const std::size_t begin = text.find(kMarkBegin);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin + 1, text.find(kMarkEnd, begin) - begin - 1));
}

std::string shown(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kMarkBegin) {
      result.push_back(text[i]);
      continue;
    }
    result += "?";
    i = std::min(text.find(kMarkEnd, i), text.size());
  }
  return result;
}

Truth truth(bool holds) {
  return holds ? Truth::yes : Truth::no;
}

Truth operator!(Truth one) {
  return one == Truth::unknown ? one : truth(one == Truth::no);
}

State merged(State one, State other, const std::string& why) {
  if (one.stopped()) return other.stopped() && other.ended ? one : other;
  if (other.stopped()) return one;
  for (auto& [name, variable] : one.variables) {
    const auto found = other.variables.find(name);
    if (found == other.variables.end() || !same(variable, found->second)) variable = unknown_variable(variable, why);
  }
  for (const auto& [name, variable] : other.variables)
    if (one.variables.count(name) == 0) one.variables.emplace(name, unknown_variable(variable, why));
  for (const auto& [name, function] : other.functions) one.functions.emplace(name, function);
  if (one.arguments.size() != other.arguments.size()) one.arguments = {{unknown(why), {}}};
  return one;
}

std::size_t size_of(const State& state) {
  std::size_t size = 64 * state.arguments.size();
  for (const auto& [name, variable] : state.variables) {
    size += 64 + name.size();
    for (const Text& item : variable.items) size += 64 + item.text.size();
  }
  return size;
}

}  // namespace manyworlds::experiments::shell
