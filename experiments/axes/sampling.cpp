#include "experiments/axes/sampling.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {

GridPermutation::GridPermutation(std::uint64_t points, std::uint64_t seed) : points_(points), seed_(seed) {
  MANYWORLDS_CHECK(points >= 1 && points <= kMaxPoints, "a grid of {} points", points);
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < points) ++half_bits_;
}

std::uint64_t GridPermutation::at(std::uint64_t index) const {
  constexpr std::uint64_t kRounds = 4;
  MANYWORLDS_CHECK(index < points_, "place {} of {}", index, points_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = index >> half_bits_, right = index & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = left ^ (core::decision_hash(seed_, right, round) & mask);
      left = right;
      right = mixed;
    }
    index = (left << half_bits_) | right;
  } while (index >= points_);
  return index;
}

void read_sample_entry(const std::string& name, const import::Node& value, const import::Node& place, Sample& to) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = name == "experiments" ? 1 : 0;
  info.maximum = name == "experiments" ? 1e6 : 1e15;
  if (name != "experiments" && name != "seed")
    place.fail(fmt::format("unknown key 'sample.{}'{}", name, suggestion(name, {"experiments", "seed"})));
  const auto read = std::get<std::int64_t>(import::read_value(value, info, fmt::format("sample.{}", name)));
  (name == "seed" ? to.seed : to.experiments) = read;
  if (name == "experiments") to.place = place;
}

Sample read_sample(const import::Node& node) {
  if (node.kind != import::Node::Kind::mapping)
    node.fail(fmt::format("'sample' must be a mapping, not {}", import::describe(node)));
  Sample result;
  for (const import::Entry& entry : node.entries) {
    import::Node place = entry.value;
    if (entry.line > 0) place.line = entry.line;
    read_sample_entry(entry.key, entry.value, place, result);
  }
  if (result.experiments == 0) node.fail("'sample' needs experiments: how many valid points are taken");
  return result;
}

}  // namespace manyworlds::experiments
