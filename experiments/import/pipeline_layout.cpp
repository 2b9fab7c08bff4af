#include "experiments/import/pipeline_layout.hpp"

#include <algorithm>
#include <charconv>

namespace manyworlds::experiments::import {
namespace {

constexpr std::size_t kMaxLayoutLength = 4'096;  // of an expanded layout
constexpr int kMaxNesting = 16;

std::optional<std::string> expand(std::string_view& text, int depth) {
  if (depth > kMaxNesting) return std::nullopt;
  std::string all;
  while (!text.empty() && text[0] != ')') {
    std::string one;
    if (text[0] == '(') {
      text.remove_prefix(1);
      const auto group = expand(text, depth + 1);
      if (!group) return std::nullopt;
      one = *group;
    } else if (std::string_view("EtmL|,").find(text[0]) != std::string_view::npos) {
      one = text[0] == ',' ? "" : std::string(1, text[0]);
    } else {
      return std::nullopt;
    }
    text.remove_prefix(1);
    std::size_t times = 1;
    if (text.starts_with('*')) {
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), times);
      if (error != std::errc() || times > kMaxLayoutLength) return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    if (all.size() + one.size() * times > kMaxLayoutLength) return std::nullopt;
    for (std::size_t i = 0; i < times; ++i) all += one;
  }
  if ((depth > 0) != text.starts_with(')')) return std::nullopt;
  return all;
}

}  // namespace

std::optional<std::string> expanded_layout(std::string_view text) {
  return expand(text, 0);
}

std::vector<std::int64_t> layers_of_stages(std::string_view expanded) {
  std::vector<std::int64_t> layers{0};
  for (const char part : expanded) {
    if (part == '|')
      layers.push_back(0);
    else
      layers.back() += part == 't' ? 1 : 0;
  }
  return layers;
}

bool has_mtp_before_loss(std::string_view expanded, std::int64_t mtp_layers) {
  if (std::count(expanded.begin(), expanded.end(), 'm') != mtp_layers) return false;
  return mtp_layers == 0 || expanded.ends_with(std::string(static_cast<std::size_t>(mtp_layers), 'm') + "L");
}

}  // namespace manyworlds::experiments::import
