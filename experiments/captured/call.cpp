#include "experiments/captured/call.hpp"

namespace manyworlds::experiments::captured {

bool is_part_of_step(CallKind kind) {
  switch (kind) {
    case CallKind::other:
    case CallKind::create_stream:
    case CallKind::set_device:
    case CallKind::open_communicator:
    case CallKind::start_profiler:
    case CallKind::stop_profiler:
      return false;
    default:
      return true;
  }
}

bool is_work(CallKind kind) {
  switch (kind) {
    case CallKind::launch:
    case CallKind::product:
      return true;
    default:
      return is_communication(kind);
  }
}

bool is_communication(CallKind kind) {
  return kind == CallKind::collective || kind == CallKind::send || kind == CallKind::receive;
}

std::uint32_t Words::operator()(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(text, number);
  return number;
}

}  // namespace manyworlds::experiments::captured
