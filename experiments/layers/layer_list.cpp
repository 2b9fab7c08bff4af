#include "experiments/layers/layer_list.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace manyworlds::experiments::models {
namespace {

constexpr std::size_t kMaxPeriod = 16;  // layers of a repetition

struct Repetition {
  std::size_t period = 1, times = 1;
};

std::size_t times_repeated(const std::vector<std::size_t>& layers, std::size_t from, std::size_t period) {
  std::size_t same = from + period;
  while (same < layers.size() && layers[same] == layers[same - period]) ++same;
  return std::min((same - from) / period, layers.size());
}

/// Returns the repetition from a layer on that covers most layers, and of these the shortest.
Repetition longest(const std::vector<std::size_t>& layers, std::size_t from) {
  Repetition best;
  for (std::size_t period = 1; period <= std::min(kMaxPeriod, (layers.size() - from) / 2); ++period) {
    const std::size_t times = times_repeated(layers, from, period);
    if (times > 1 && times * period > best.times * best.period) best = {period, times};
  }
  return best;
}

}  // namespace

void LayerList::add(const std::string& name, const std::string& parts) {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& one) { return one.first == name; });
  layers_.push_back(static_cast<std::size_t>(found - blocks_.begin()));
  if (found == blocks_.end()) blocks_.emplace_back(name, parts);
}

std::string LayerList::name_of(const std::string& parts, const std::string& prefix) const {
  for (const auto& [name, of_block] : blocks_)
    if (of_block == parts) return name;
  return fmt::format("{}_{}", prefix, blocks_.size() + 1);
}

void LayerList::begin_with(const std::string& part) {
  blocks_.emplace_back("first", fmt::format("[{}, {}", part, blocks_[layers_.front()].second.substr(1)));
  layers_.front() = blocks_.size() - 1;
}

void LayerList::end_with(const std::string& part) {
  std::string parts = blocks_[layers_.back()].second;
  parts.pop_back();
  blocks_.emplace_back("last", fmt::format("{}, {}]", parts, part));
  layers_.back() = blocks_.size() - 1;
}

std::string LayerList::text() const {
  std::string blocks, layers;
  for (std::size_t block = 0; block < blocks_.size(); ++block)
    if (std::find(layers_.begin(), layers_.end(), block) != layers_.end())
      blocks += fmt::format("{}\"{}\": {}", blocks.empty() ? "" : ", ", blocks_[block].first, blocks_[block].second);
  for (std::size_t at = 0; at < layers_.size();) {
    const Repetition one = longest(layers_, at);
    std::string names;
    for (std::size_t i = at; i < at + one.period; ++i)
      names += fmt::format("{}\"{}\"", i == at ? "" : ", ", blocks_[layers_[i]].first);
    layers += layers.empty() ? "" : ", ";
    layers += one.times == 1 ? names : fmt::format("{{\"repeat\": {}, \"of\": [{}]}}", one.times, names);
    at += one.period * one.times;
  }
  return fmt::format("\"blocks\": {{{}}}, \"layers\": [{}]", blocks, layers);
}

std::string architecture_text(const std::vector<Network>& front, const LayerList& layers, const Ends& ends) {
  std::string missing;
  if (!ends.embedding) missing += R"("embedding": false, )";
  if (!ends.head) missing += R"("head": false, )";
  if (front.empty()) return fmt::format("{{{}{}}}", missing, layers.text());
  std::string networks;
  for (const Network& one : front)
    networks += fmt::format("\"{}\": {{{}, {}}}, ", one.name, one.options, one.layers.text());
  return fmt::format("{{{}\"networks\": {{{}\"{}\": {{{}}}}}}}", missing, networks, ends.network, layers.text());
}

}  // namespace manyworlds::experiments::models
