// The rows of AICB's table, by section.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "experiments/programs/stream_program.hpp"
#include "experiments/simai/rank_groups.hpp"

namespace manyworlds::experiments::simai {

enum class RowKind : std::uint8_t { collective, barrier, transfer, computation, epoch_end };

struct Row {
  RowKind kind = RowKind::collective;
  int line = 0;
  core::collective::Kind collective = core::collective::Kind::all_reduce;
  std::optional<GroupKind> group;
  std::uint32_t group_size = 0;  // 0: not said
  std::int64_t bytes = 0;
  std::string stage;
  bool is_to_next = false, receives = false;  // of a transfer: the dimension, and the end
  std::optional<double> us;                   // of computation
  std::optional<programs::GemmShape> product;
};

struct Section {
  std::vector<std::uint32_t> ranks;  // empty: all
  std::vector<Row> rows;             // of the last epoch
  std::vector<Row> sizes;            // of epochs before it, those whose group and its size no row before them has
  std::size_t before = 0;            // rows of epochs before it
  bool has_end = true;               // whether an epoch_end stands behind the last epoch
};

/// Parses a table; `name` is its name in messages. See parse_collectives() for the errors.
std::vector<Section> parse_sections(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::simai
