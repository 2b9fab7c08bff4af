// Measured rows that cannot be predicted: why is kept with the row, and the table is read on.
#pragma once

#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {

/// Thrown to stop reading a row.
struct UnsupportedRow {
  std::string reason, detail;
};

/// Calls `read`, which reads `row`. If that is not supported, or a field cannot be read, stores why in
/// `row.unsupported` and `row.detail`.
template <class Row, class Read>
void read_supported(Row& row, Read&& read) {
  try {
    std::forward<Read>(read)();
  } catch (const UnsupportedRow& stopped) {
    row.unsupported = stopped.reason;
    row.detail = stopped.detail;
  } catch (const core::InputError& error) {
    row.unsupported = "a field cannot be read";
    row.detail = error.what();
  }
}

}  // namespace manyworlds::experiments::import
