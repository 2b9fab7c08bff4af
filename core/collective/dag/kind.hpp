// Names of the collective operations and of the protocols of their transfers.
#pragma once

#include <cstdint>

namespace manyworlds::core::collective {

/// The meaning of an operation's `bytes`, per rank: all_reduce, reduce_scatter and reduce: the input vector;
/// all_gather: the gathered result; all_to_all: the send buffer (including the rank's part for itself); broadcast and
/// send: the data sent. The root of a broadcast or reduce is member 0 unless a Split states another one.
enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, reduce };

/// Protocols, as in NCCL. `none` has no costs; the costs of calibrated protocols were measured (see Calibration).
enum class Protocol : std::uint8_t {
  none,
  ll,
  ll128,
  simple,
  automatic,      // only in Library
  calibrated,     // only in Library: one of the three below
  calibrated_ll,  // only in Shape
  calibrated_simple,
  calibrated_ll128
};

}  // namespace manyworlds::core::collective
