#include "farm/ramp/critical_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::farm::ramp {
namespace {

using experiments::import::Entry;
using experiments::import::Node;

constexpr double kSlowestGrowth = 20;  // of alpha_s / alpha_b
constexpr const char* kExample = "{1e9: 4e5, 50e9: 4e6}";

struct LawKey {
  const char* name;
  double LawConstants::*member;
  double low, high;
  const char* unit;
};
constexpr std::array<LawKey, 6> kLawKeys{{{"b_star", &LawConstants::b_star, 1, kTokensLimit, "tokens"},
                                          {"alpha_b", &LawConstants::alpha_b, 0.01, 10, ""},
                                          {"n_c", &LawConstants::n_c, 1, 1e30, "parameters"},
                                          {"alpha_n", &LawConstants::alpha_n, 0.001, 2, ""},
                                          {"s_c", &LawConstants::s_c, 1e-6, 1e12, "steps"},
                                          {"alpha_s", &LawConstants::alpha_s, 0.01, 10, ""}}};

double real_of(const Node& node, const std::string& key, double low, double high, const char* unit) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::real;
  info.unit = unit;
  info.minimum = low, info.maximum = high;
  return std::get<double>(experiments::import::read_value(node, info, key));
}

double tokens_in(const Entry& entry, const std::string& file) {
  const auto tokens = core::number_in<double>(entry.key);
  if (tokens && *tokens >= 0 && *tokens <= kTokensLimit) return *tokens;
  throw core::InputError(fmt::format("a key of 'points' must be the tokens trained so far, from 0 to {:g}, not '{}'",
                                     kTokensLimit, entry.key),
                         file, entry.line);
}

std::vector<MeasuredPoint> points_of(const Node& node) {
  if (node.kind != Node::Kind::mapping || node.entries.empty() || node.entries.size() > kPointsLimit)
    node.fail(
        fmt::format("'points' must map 1 to {} numbers of tokens trained so far to the critical batch there, in "
                    "tokens, as in {}",
                    kPointsLimit, kExample));
  std::vector<MeasuredPoint> points;
  for (const Entry& entry : node.entries) {
    const MeasuredPoint point{tokens_in(entry, *node.file),
                              real_of(entry.value, fmt::format("points.{}", entry.key), 1, kTokensLimit, "tokens")};
    if (!points.empty() && point.tokens <= points.back().tokens)
      throw core::InputError(
          fmt::format("'points' must ascend in tokens: {:g} stands after {:g}", point.tokens, points.back().tokens),
          *node.file, entry.line);
    if (!points.empty() && point.critical < points.back().critical)
      throw core::InputError(
          fmt::format("the critical batch falls from {:g} to {:g} tokens; measurements that do must be smoothed, as "
                      "batches that shrink are never considered",
                      points.back().critical, point.critical),
          *node.file, entry.line);
    points.push_back(point);
  }
  return points;
}

LawConstants law_of(const Node& root, bool is_measured) {
  LawConstants law;
  for (const LawKey& key : kLawKeys) {
    const Node* node = root.find(key.name);
    if (node == nullptr) continue;
    if (is_measured) node->fail(fmt::format("'{}' is of the law, which 'points' take the place of", key.name));
    law.*key.member = real_of(*node, key.name, key.low, key.high, key.unit);
  }
  if (law.alpha_s > kSlowestGrowth * law.alpha_b)
    root.fail(fmt::format("'alpha_s' must be at most {} times 'alpha_b', not {:g} and {:g}", kSlowestGrowth,
                          law.alpha_s, law.alpha_b));
  return law;
}

}  // namespace

CriticalFile parse_critical_file(std::string_view text, const std::string& name) {
  const Node root = experiments::import::parse_yaml(text, name);
  std::vector<std::string> known{"points", "batch_tokens"};
  for (const LawKey& key : kLawKeys) known.emplace_back(key.name);
  experiments::import::check_keys(root, known, "a file of critical batches");
  CriticalFile file;
  const Node *points = root.find("points"), *batch = root.find("batch_tokens");
  if (points != nullptr) file.points = points_of(*points);
  if (batch != nullptr && points == nullptr) batch->fail("'batch_tokens' belongs to 'points'");
  if (batch != nullptr) file.batch_tokens = real_of(*batch, "batch_tokens", 0, kTokensLimit, "tokens");
  if (root.entries.empty())
    root.fail(fmt::format("names neither 'points', as in {}, nor a constant of the law", kExample));
  file.law = law_of(root, points != nullptr);
  return file;
}

}  // namespace manyworlds::farm::ramp
