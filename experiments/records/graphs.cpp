#include "experiments/records/graphs.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::experiments::captured {

using core::InputError;

void Graphs::begin(std::int32_t stream, std::int32_t graph) {
  const auto [known, is_new] = graphs_.try_emplace(graph);
  if (!is_new) throw InputError(fmt::format("graph {} was captured before", graph));
  if (!of_stream_.emplace(stream, graph).second) throw InputError(fmt::format("stream {} is captured already", stream));
  known->second.origin = stream;
}

void Graphs::end(std::int32_t graph) {
  const auto known = graphs_.find(graph);
  if (known == graphs_.end() || known->second.has_ended)
    throw InputError(fmt::format("the capture of graph {} has not begun", graph));
  known->second.has_ended = true;
  std::erase_if(of_stream_, [&](const auto& one) { return one.second == graph; });
  std::erase_if(of_event_, [&](const auto& one) { return one.second == graph; });
}

const Graphs::Graph& Graphs::ended(std::int32_t graph) const {
  const auto known = graphs_.find(graph);
  if (known == graphs_.end() || !known->second.has_ended)
    throw InputError(fmt::format("graph {} was not captured before", graph));
  return known->second;
}

bool Graphs::keep(const Call& call) {
  if (!is_part_of_step(call.kind) || call.stream == kNone) return false;
  if (call.kind == CallKind::wait_event)
    if (const auto event = of_event_.find(call.number); event != of_event_.end())
      of_stream_.emplace(call.stream, event->second);
  const auto captured = of_stream_.find(call.stream);
  if (call.kind == CallKind::record_event) {
    of_event_.erase(call.number);
    if (captured != of_stream_.end()) of_event_[call.number] = captured->second;
  }
  if (captured == of_stream_.end()) return false;
  if (call.kind == CallKind::launch_graph) throw InputError("launches a graph into another one, which is not modelled");
  graphs_.at(captured->second).calls.push_back(call);
  return true;
}

void Graphs::launch(const Call& launch, std::vector<Call>& to) {
  const Graph& graph = ended(launch.number);
  std::map<std::int32_t, std::int32_t> groups;
  for (Call call : graph.calls) {
    call.is_of_graph = true;
    call.line = launch.line, call.thread = launch.thread;
    call.stream = call.stream == graph.origin ? launch.stream : call.stream + kInGraphs;
    if (call.kind == CallKind::record_event || call.kind == CallKind::wait_event) call.number += kInGraphs;
    if (call.group != kNone) {
      const auto [known, is_new] = groups.try_emplace(call.group, next_group_);
      if (is_new) ++next_group_;
      call.group = known->second;
    }
    to.push_back(call);
  }
}

std::uint64_t Graphs::form_of(std::int32_t graph) const {
  std::uint64_t form = 0;
  for (const Call& call : ended(graph).calls) form = (form ^ call.form) * 0x9e3779b97f4a7c15u + 1;
  return form;
}

}  // namespace manyworlds::experiments::captured
