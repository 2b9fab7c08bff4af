#include "core/network/fabric/switch_classes.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace manyworlds::core::network {
namespace {

constexpr std::size_t kSparse = 8;  // a table with less than one in so many distances is kept as pairs

/// Sorts links and keeps the lightest of those between the same ends.
void keep_lightest(std::vector<TransitLink>& links) {
  std::sort(links.begin(), links.end());
  const auto same_ends = [](const TransitLink& a, const TransitLink& b) { return a.from == b.from && a.to == b.to; };
  links.erase(std::unique(links.begin(), links.end(), same_ends), links.end());
}

}  // namespace

DistanceTable::DistanceTable(std::size_t classes, std::vector<std::pair<std::uint32_t, std::uint32_t>> reached) {
  if (reached.size() * kSparse < classes) {
    few_ = std::move(reached);
    std::sort(few_.begin(), few_.end());
    return;
  }
  dense_.assign(classes, kUnreachable);
  for (const auto& [from_class, distance] : reached) dense_[from_class] = distance;
}

std::uint32_t DistanceTable::from_few(std::uint32_t from_class) const {
  const auto found = std::lower_bound(few_.begin(), few_.end(), std::pair{from_class, std::uint32_t{0}});
  return found != few_.end() && found->first == from_class ? found->second : kUnreachable;
}

SwitchClasses::SwitchClasses(std::size_t vertices, std::vector<TransitLink> links, bool merge_classes)
    : classes_(vertices), class_of_(vertices) {
  std::iota(class_of_.begin(), class_of_.end(), 0u);
  keep_lightest(links);
  while (merge_classes && merge(links)) {
  }
  std::sort(links.begin(), links.end(), [](const TransitLink& a, const TransitLink& b) {
    return std::tuple(a.to, a.from) < std::tuple(b.to, b.from);
  });
  in_begin_.assign(classes_ + 1, 0);
  for (const TransitLink& link : links) ++in_begin_[link.to + 1];
  std::partial_sum(in_begin_.begin(), in_begin_.end(), in_begin_.begin());
  in_ = std::move(links);
  distance_.assign(classes_, kUnreachable);
  table_number_ = distance_;
}

bool SwitchClasses::merge(std::vector<TransitLink>& links) {
  std::vector<std::vector<std::uint32_t>> neighbours(classes_);  // links out, then links in
  for (const TransitLink& link : links) {
    auto& out = neighbours[link.from];
    out.insert(out.end(), {link.to, link.weight});
  }
  for (auto& of_class : neighbours) of_class.push_back(kUnreachable);
  for (const TransitLink& link : links) {  // sorted by `from`
    auto& in = neighbours[link.to];
    in.insert(in.end(), {link.from, link.weight});
  }
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> new_class;
  for (auto& of_class : neighbours)
    new_class.push_back(
        numbers.try_emplace(std::move(of_class), static_cast<std::uint32_t>(numbers.size())).first->second);
  if (numbers.size() == classes_) return false;
  classes_ = numbers.size();
  for (std::uint32_t& of_vertex : class_of_) of_vertex = new_class[of_vertex];
  for (TransitLink& link : links) link = {new_class[link.from], new_class[link.to], link.weight};
  keep_lightest(links);
  return true;
}

/// Runs Dijkstra's algorithm backwards from a class.
DistanceTable SwitchClasses::table_to(std::uint32_t destination_class) {
  using Item = std::pair<std::uint32_t, std::uint32_t>;  // (distance, class)
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  std::vector<std::uint32_t> reached{destination_class};
  distance_[destination_class] = 0;
  open.emplace(0, destination_class);
  std::uint32_t round_trip = kUnreachable;  // the shortest way out of the class and back into it
  while (!open.empty()) {
    const auto [distance, at] = open.top();
    open.pop();
    if (distance != distance_[at]) continue;
    for (std::uint32_t i = in_begin_[at]; i < in_begin_[at + 1]; ++i) {
      const TransitLink& link = in_[i];
      const std::uint32_t new_distance = distance + link.weight;
      if (link.from == destination_class) round_trip = std::min(round_trip, new_distance);
      if (new_distance >= distance_[link.from]) continue;
      if (distance_[link.from] == kUnreachable) reached.push_back(link.from);
      distance_[link.from] = new_distance;
      open.emplace(new_distance, link.from);
    }
  }
  distance_[destination_class] = round_trip;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> distances;
  for (const std::uint32_t from_class : reached)
    distances.emplace_back(from_class, std::exchange(distance_[from_class], kUnreachable));
  return {classes_, std::move(distances)};
}

const DistanceTable& SwitchClasses::to(std::uint32_t destination_class) {
  std::uint32_t& number = table_number_[destination_class];
  if (number == kUnreachable) {
    number = static_cast<std::uint32_t>(tables_.size());
    tables_.push_back(table_to(destination_class));
  }
  return tables_[number];
}

}  // namespace manyworlds::core::network
