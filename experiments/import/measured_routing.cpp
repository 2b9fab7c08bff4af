// Parses tables of expert loads. Rows may come in any order; layers are checked for completeness after the last row.
#include "experiments/import/measured_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/units.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::import {
namespace {

constexpr std::int64_t kMaxLayers = 10'000, kMaxExperts = 100'000;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 53;
constexpr double kShareUnit = std::int64_t{1} << 40;
constexpr double kShareSumTolerance = 1e-3;  // rounding error allowed in the sum of a layer's shares

struct ExpertLoad {
  std::int64_t weight = 0;
  double share = 0;
  int line = 0;
};
using Layers = std::map<std::int64_t, std::map<std::int64_t, ExpertLoad>>;

/// Returns whether the table gives loads as shares instead of tokens.
bool check_columns(const CsvHeader& header) {
  const std::vector<std::string> known{"layer", "expert", "tokens", "share"};
  for (const std::string& name : header.names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw core::InputError(fmt::format("unknown column '{}'{}", name, suggestion(name, known)), header.file, 1);
  for (const char* name : {"layer", "expert"})
    if (!header.has(name)) throw core::InputError(fmt::format("column '{}' is missing", name), header.file, 1);
  if (header.has("tokens") == header.has("share"))
    throw core::InputError("the table needs one of the columns 'tokens' and 'share'", header.file, 1);
  return header.has("share");
}

std::int64_t number(const CsvRow& row, const char* column, std::int64_t maximum) {
  const auto given = row.integer(column);
  if (!given) row.fail(fmt::format("{} is missing", column));
  if (*given < 0 || *given > maximum) row.fail(fmt::format("{} must be from 0 to {}, not {}", column, maximum, *given));
  return *given;
}

double share_of(const CsvRow& row) {
  const auto given = row.real("share");
  if (!given) row.fail("share is missing");
  if (!(*given >= 0 && *given <= 1)) row.fail(fmt::format("share must be from 0 to 1, not {}", row.text("share")));
  return *given;
}

std::vector<std::int64_t> layer_weights(std::int64_t layer, const std::map<std::int64_t, ExpertLoad>& experts,
                                        bool shares, const std::string& name) {
  const int line = experts.begin()->second.line;
  std::vector<std::int64_t> weights;
  double sum = 0;
  for (const auto& [expert, given] : experts) {
    if (expert != static_cast<std::int64_t>(weights.size()))
      throw core::InputError(
          fmt::format("layer {} has no row for expert {}; give 0 if no token goes there", layer, weights.size()), name,
          given.line);
    weights.push_back(shares ? core::round_half_up(given.share * kShareUnit) : given.weight);
    sum += given.share;
  }
  if (std::all_of(weights.begin(), weights.end(), [](std::int64_t weight) { return weight == 0; }))
    throw core::InputError(fmt::format("no token goes to any expert of layer {}", layer), name, line);
  if (shares && std::abs(sum - 1) > kShareSumTolerance)
    throw core::InputError(fmt::format("shares of layer {} add up to {:.6f}, not to 1", layer, sum), name, line);
  return weights;
}

}  // namespace

RoutingTable parse_measured_routing(std::string_view text, const std::string& name) {
  const CsvTable table = parse_csv(text, name);
  const bool shares = check_columns(*table.header);
  Layers layers;
  for (const CsvRow& row : table.rows) {
    const std::int64_t layer = number(row, "layer", kMaxLayers - 1), expert = number(row, "expert", kMaxExperts - 1);
    ExpertLoad given;
    given.line = row.line();
    if (shares)
      given.share = share_of(row);
    else
      given.weight = number(row, "tokens", kMaxTokens);
    const auto [known, is_new] = layers[layer].try_emplace(expert, given);
    if (!is_new) row.fail(fmt::format("layer {} has expert {} in line {} already", layer, expert, known->second.line));
  }
  if (layers.empty()) throw core::InputError("the table has no row", name, 1);
  RoutingTable result;
  for (const auto& [layer, experts] : layers) result[layer] = layer_weights(layer, experts, shares, name);
  return result;
}

}  // namespace manyworlds::experiments::import
