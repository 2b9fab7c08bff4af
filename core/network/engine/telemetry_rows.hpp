// In-band telemetry of the unacknowledged packets of a flow: a queue of rows with one record per link of the path. It
// is most of the memory of a flow, so a record omits the rate, which the link itself knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/network/engine/sender_protocol.hpp"

namespace manyworlds::core::network {

/// Telemetry without the link rate; `at` is kNever until the link begins to send the packet.
struct TelemetryRecord {
  Time at = kNever;
  std::int64_t waiting_bytes = 0, sent_bytes = 0;
};

class TelemetryRows {
 public:
  /// Removes all rows. From now on, rows have `links` records; `rows` is the expected maximum number of rows.
  void clear(std::uint32_t links, std::uint32_t rows) {
    head_ = size_ = 0;
    links_ = links;
    if (ring_.size() < std::size_t{rows} * links) ring_.resize(std::size_t{rows} * links);
    rows_ = links == 0 ? rows : static_cast<std::uint32_t>(ring_.size() / links);
  }
  std::uint32_t size() const { return size_; }
  TelemetryRecord* row(std::uint32_t i) { return ring_.data() + begin_of(i); }
  const TelemetryRecord* row(std::uint32_t i) const { return ring_.data() + begin_of(i); }

  /// Appends a row of empty records and returns it.
  TelemetryRecord* push() {
    if (size_ == rows_) grow();
    TelemetryRecord* new_row = row(size_++);
    std::fill_n(new_row, links_, TelemetryRecord{});
    return new_row;
  }
  void pop() {
    if (++head_ == rows_) head_ = 0;
    --size_;
  }

 private:
  std::size_t begin_of(std::uint32_t i) const {
    const std::uint32_t at = head_ + i;
    return std::size_t{at < rows_ ? at : at - rows_} * links_;
  }
  void grow() {
    const std::uint32_t rows = rows_ + rows_ / 2 + 8;
    std::vector<TelemetryRecord> larger(std::size_t{rows} * links_);
    for (std::uint32_t i = 0; i < size_; ++i) std::copy_n(row(i), links_, larger.data() + std::size_t{i} * links_);
    ring_ = std::move(larger);
    rows_ = rows;
    head_ = 0;
  }

  std::vector<TelemetryRecord> ring_;
  std::uint32_t links_ = 0, rows_ = 0, head_ = 0, size_ = 0;
};

}  // namespace manyworlds::core::network
