#include "io/results/canonical_bytes.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <limits>

#include "io/log/little_endian.hpp"

namespace manyworlds::io {

namespace {

std::uint64_t bits_of(double value) {
  return std::bit_cast<std::uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
}

class Canonical {
 public:
  void number(std::uint64_t value) { put_little_endian(bytes, value); }
  void text(const std::string& value) {
    number(value.size());
    bytes += value;
  }
  void column(const Column& column) {
    text(column.name);
    text(column.unit);
    text(column.description);
    number(column.values.index());  // 0 integers, 1 reals, 2 texts
    number(column.rows());
    std::visit(
        [this](const auto& values) {
          for (const auto& value : values) one(value);
        },
        column.values);
  }

  std::string bytes = "manyworlds answer 1\n";

 private:
  void one(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void one(double value) { number(bits_of(value)); }
  void one(const std::string& value) { text(value); }
};

}  // namespace

bool same_value(double left, double right) {
  return bits_of(left) == bits_of(right);
}

std::string canonical_bytes(const Results& results) {
  Canonical canonical;
  canonical.text(results.spec);
  canonical.number(results.axis_names.size());
  for (const std::string& name : results.axis_names) canonical.text(name);
  for (const auto& [name, table] : result_tables(results)) {
    canonical.text(name);
    canonical.number(table->columns.size());
    for (const Column& column : table->columns) canonical.column(column);
  }
  return std::move(canonical.bytes);
}

std::string canonical_bytes(const std::filesystem::path& results_file) {
  return canonical_bytes(read_results(results_file));
}

std::string results_digest(const Results& results) {
  const std::string bytes = canonical_bytes(results);
  const XXH128_hash_t digest = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace manyworlds::io
