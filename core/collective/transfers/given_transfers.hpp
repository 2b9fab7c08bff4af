// Writes out the transfers of an algorithm that is given as data.
#pragma once

#include <cstdint>
#include <functional>

#include "core/collective/dag/dag_builder.hpp"
#include "core/collective/dag/given_algorithm.hpp"

namespace manyworlds::core::collective {

/// A transfer that is to be written: `after` are transfers and joins that were written before.
struct GivenTransfer {
  std::uint32_t source = 0, destination = 0, channel = 0;
  std::int64_t bytes = 0;  // of data
  std::span<const std::uint32_t> after;
};

/// What it is written to: functions that return the number of what was added.
struct GivenSink {
  std::function<std::uint32_t(const GivenTransfer&)> transfer;
  std::function<std::uint32_t(std::uint32_t member, std::span<const std::uint32_t> after)> join;
};

/// Writes the transfers of an operation of `bytes`, which the algorithm divides, each after those that it waits for. A
/// transfer begins when its sender has come to it and the receiver has a slot free; the thread block that sends goes on
/// when it has arrived. Throws InternalError for an algorithm that does not come to its end.
void write_given(const GivenAlgorithm& algorithm, std::int64_t bytes, const GivenSink& to);

}  // namespace manyworlds::core::collective
