#include "core/stream/interference.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::stream {
namespace {

constexpr std::int64_t kPpm = 1'000'000;

bool is_reduction(collective::Kind kind) {
  using collective::Kind;
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

}  // namespace

std::int64_t Interference::load_of(workload::Role role, collective::Kind kind) const {
  if (workload::is_pipeline_transfer(role)) return 0;
  if (units == 0) return slowdown_ppm > 0 ? 1 : 0;
  if (workload::is_ring_receiver(role)) return 0;
  return is_reduction(kind) ? units_to_reduce : units_to_move;
}

Pace Interference::pace_beside(std::int64_t load) const {
  if (load == 0) return {1, 1};
  if (units == 0) return {kPpm + slowdown_ppm, kPpm};
  MANYWORLDS_CHECK(load < units, "collectives take {} of {} compute units", load, units);
  return {units, units - load};
}

Time Interference::lost_beside(workload::Role role, collective::Kind kind, Time beside) const {
  const Pace pace = pace_beside(load_of(role, kind));
  return static_cast<Time>(Int128{beside} * (pace.numerator - pace.denominator) / pace.numerator);
}

}  // namespace manyworlds::core::stream
