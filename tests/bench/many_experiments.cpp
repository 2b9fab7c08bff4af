// many_experiments RESULTS.h5 ROWS OUTPUT.h5: a results file of so many experiments, for measuring what reads them.
// They are those of a real file over and over, every figure drawn anew within 20 % of its own, so that no two are
// alike.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "io/results/results.hpp"

namespace {

using namespace manyworlds;

/// In [0, 1), of two numbers (Steele et al. 2014, SplitMix64).
double drawn(std::uint64_t row, std::uint64_t column) {
  std::uint64_t z = (row * 0x100000001b3ULL + column) * 0x9e3779b97f4a7c15ULL + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

bool is_axis(const io::Results& results, const std::string& name) {
  for (const std::string& axis : results.axis_names)
    if (axis == name) return true;
  return false;
}

template <class T>
std::vector<T> repeated(const std::vector<T>& values, std::size_t rows) {
  std::vector<T> result;
  for (std::size_t row = 0; row < rows; ++row) result.push_back(values[row % values.size()]);
  return result;
}

void multiply(io::Results& results, std::size_t rows) {
  for (std::size_t c = 0; c < results.experiments.columns.size(); ++c) {
    io::Column& column = results.experiments.columns[c];
    std::visit([&](auto& values) { values = repeated(values, rows); }, column.values);
    if (column.name == "id") {
      auto& ids = std::get<std::vector<std::int64_t>>(column.values);
      for (std::size_t row = 0; row < rows; ++row) ids[row] = static_cast<std::int64_t>(row);
    } else if (is_axis(results, column.name)) {
      continue;
    } else if (auto* reals = std::get_if<std::vector<double>>(&column.values)) {
      for (std::size_t row = 0; row < rows; ++row) (*reals)[row] *= 0.8 + 0.4 * drawn(row, c);
    } else if (auto* integers = std::get_if<std::vector<std::int64_t>>(&column.values);
               integers && column.unit == "bytes") {
      for (std::size_t row = 0; row < rows; ++row)
        (*integers)[row] = std::llround(static_cast<double>((*integers)[row]) * (0.8 + 0.4 * drawn(row, c)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: many_experiments RESULTS.h5 ROWS OUTPUT.h5\n");
    return 2;
  }
  io::Results results = io::read_results(argv[1]);
  multiply(results, static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10)));
  io::write_results(argv[3], results);
  return 0;
}
