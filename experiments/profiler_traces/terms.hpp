// How users are spoken to of the traces of one profiler or another.
#pragma once

namespace manyworlds::experiments::profiler {

struct ProfilerTerms {
  const char* origin;       // of the programs: "traces of ..."
  const char* rank;         // where a trace says its rank
  const char* step;         // behind "it has no": what a step would be known by, and how to have it
  const char* exact_waits;  // behind "profile with": to have waits with their events
};

}  // namespace manyworlds::experiments::profiler
