// What tests look at in programs that a reader made.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/programs/imported.hpp"

namespace manyworlds::tests {

inline double host_us(const experiments::programs::StreamOp& op) {
  return std::get<experiments::programs::HostWork>(op.work).us;
}
inline double kernel_us(const experiments::programs::StreamOp& op) {
  return *std::get<experiments::programs::KernelWork>(op.work).measured_us;
}

inline std::vector<experiments::programs::Communication> communications(
    const experiments::programs::RankProgram& program) {
  std::vector<experiments::programs::Communication> all;
  for (const experiments::programs::StreamOp& op : program.ops)
    if (const auto* call = std::get_if<experiments::programs::Communication>(&op.work)) all.push_back(*call);
  return all;
}

/// The account of a reader, as one text.
inline std::string account(const experiments::programs::Imported& imported) {
  return fmt::format("{}", fmt::join(imported.account, "\n"));
}

/// Whether a line has a text in it.
inline bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace manyworlds::tests
