// What users say of kernels whose cost a record does not tell: a table of names, with formulas of their launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/programs/stream_program.hpp"
#include "experiments/records/rank_record.hpp"
#include "experiments/tree/expression.hpp"

namespace manyworlds::experiments::captured {

/// Reads a table (docs/capture.md): `kernels`, a list of entries with a pattern of names (`kernel`, in which * stands
/// for anything) and `us`, `bytes` or `gemm` with `dtype`, and `flops`; `gpu` is the one on which `us` were measured.
/// Formulas know blocks, threads, grid_x to grid_z, block_x to block_z, shared_bytes, and argument_1 and on.
class KernelTable {
 public:
  /// A table without entries.
  KernelTable() = default;
  /// Throws InputError, with the line, for what is no such table.
  KernelTable(std::string_view text, const std::string& name);

  /// Returns what the first entry whose pattern fits says of a launch; nothing if none does. Throws InputError, with
  /// the line of the entry, for a value that is negative, no number, or too large, and for an argument that the launch
  /// lacks or that is no number; `where` is the launch, in messages.
  std::optional<programs::KernelWork> work_of(std::uint32_t kernel, const std::string& name, const Launch& launch,
                                              const std::vector<double>& arguments, const std::string& where) const;
  const std::string& gpu() const { return gpu_; }
  /// Returns the patterns of entries that no launch took so far: none fits them, or an entry before them fits all that
  /// they do.
  std::vector<std::string> unused() const;

 private:
  struct Entry {
    std::string pattern;
    std::optional<Formula> us, bytes, flops;
    std::vector<Formula> gemm;  // m, n, k, batch
    core::compute::Dtype dtype = core::compute::Dtype::bf16;
  };
  const Entry* entry_of(std::uint32_t kernel, const std::string& name) const;

  std::vector<Entry> entries_;
  std::string gpu_;
  mutable std::vector<std::optional<std::size_t>> known_;  // by kernel: its entry, or one past the last
};

/// Returns whether a text fits a pattern, in which * stands for any characters.
bool fits(std::string_view pattern, std::string_view text);

}  // namespace manyworlds::experiments::captured
