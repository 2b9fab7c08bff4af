// A step as a trace that Perfetto and Chrome's tracing page open: the Trace Event Format, JSON object form
// (docs/formats.md, "Traces").
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/step/run/recording.hpp"

namespace manyworlds::io {

struct TraceOptions {
  std::string name;                  // of the experiment
  std::vector<std::uint32_t> ranks;  // a subset of the recorded ranks; empty: all of them
  std::size_t links = 8;             // number of network links with a counter, the busiest first
};

/// Passes the trace to `append` in pieces. `recording` belongs to a step of `compiled` that ran to its end. The same
/// step gives the same bytes, whatever its composition.
void write_trace(const core::step::CompiledStep& compiled, const core::step::Recording& recording,
                 const TraceOptions& options, const std::function<void(std::string_view)>& append);

}  // namespace manyworlds::io
