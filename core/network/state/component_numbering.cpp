// Numbers flows and links within components.
#include "core/network/state/component_numbering.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace

ComponentNumbering::ComponentNumbering(std::size_t links, std::size_t flows)
    : connected_(links), link_number_(links, kNone), flow_number_(flows, kNone), component_of_root_(links, kNone) {}

void ComponentNumbering::connect(std::span<const std::uint32_t> path) {
  for (std::size_t hop = 1; hop < path.size(); ++hop) connected_.join(path[hop], path[0]);
}

void ComponentNumbering::add_flow(std::uint32_t slot, std::span<const std::uint32_t> path) {
  ComponentState& part = components_[component_of(path[0])];
  flow_number_[slot] = static_cast<std::uint32_t>(part.flows.size());
  part.flows.push_back(slot);
  for (const std::uint32_t link : path) add_link(link);
}

void ComponentNumbering::add_link(std::uint32_t link) {
  if (link_number_[link] != kNone) return;
  ComponentState& part = components_[component_of(link)];
  link_number_[link] = static_cast<std::uint32_t>(part.links.size());
  part.links.push_back(link);
}

std::uint32_t ComponentNumbering::component_of(std::uint32_t link) {
  std::uint32_t& part = component_of_root_[connected_.root(link)];
  if (part == kNone) {
    part = static_cast<std::uint32_t>(components_.size());
    components_.emplace_back();
  }
  return part;
}

}  // namespace manyworlds::core::network
