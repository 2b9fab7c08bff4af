#include "experiments/key_contents/measured_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "core/sharing/key.hpp"

namespace manyworlds::experiments {
namespace {

using core::compute::GemmShapes;
using core::compute::MeasuredShapes;

constexpr std::array<std::string_view, core::compute::kGemmFormats> kFormats{"bf16", "fp8", "nvfp4"};
constexpr std::int64_t kMaxSize = 1 << 24, kMaxPercent = 10'000;

/// Splits text at each `separator`, from the front.
class Pieces {
 public:
  Pieces(std::string_view text, char separator) : rest_(text), separator_(separator) {}
  bool next(std::string_view& piece) {
    if (done_) return false;
    const std::size_t end = rest_.find(separator_);
    piece = rest_.substr(0, end);
    done_ = end == std::string_view::npos;
    if (!done_) rest_.remove_prefix(end + 1);
    return true;
  }

 private:
  std::string_view rest_;
  char separator_;
  bool done_ = false;
};

class ShapesReader {
 public:
  explicit ShapesReader(const std::string& name) : name_(name) {}

  void read(std::string_view text) {
    Pieces lines(text, '\n');
    std::string_view line;
    while (lines.next(line)) {
      ++line_;
      if (line_ == 1)
        read_header(line);
      else if (!line.empty())
        read_row(line);
    }
  }
  MeasuredShapes shapes() const {
    MeasuredShapes result;
    for (std::size_t format = 0; format < points_.size(); ++format)
      if (!points_[format].empty()) result.gemm[format].emplace(points_[format]);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw core::InputError(what, name_, line_); }

  std::int64_t number(std::string_view cell, std::int64_t max) const {
    const auto value = core::number_in<std::int64_t>(cell);
    if (!value || *value < 1 || *value > max) fail(fmt::format("'{}' is no whole number from 1 to {}", cell, max));
    return *value;
  }

  void read_header(std::string_view line) {
    Pieces cells(line, ',');
    std::string_view cell;
    for (const char* expected : {"format", "n", "k"})
      if (!cells.next(cell) || cell != expected) fail("the first columns must be format, n and k, then sizes of m");
    while (cells.next(cell)) sizes_.push_back(number(cell, kMaxSize));
  }

  void read_row(std::string_view line) {
    Pieces cells(line, ',');
    std::string_view format, n, k, cell;
    cells.next(format), cells.next(n), cells.next(k);
    const auto known = std::find(kFormats.begin(), kFormats.end(), format);
    if (known == kFormats.end()) fail(fmt::format("'{}' is none of bf16, fp8 and nvfp4", format));
    GemmShapes::Point point;
    point.n = number(n, kMaxSize);
    point.k = number(k, kMaxSize);
    for (std::size_t i = 0; cells.next(cell); ++i) {
      if (i == sizes_.size()) fail(fmt::format("has more than {} times", sizes_.size()));
      if (cell.empty()) continue;
      point.m = sizes_[i];
      point.percent = static_cast<std::uint16_t>(number(cell, kMaxPercent));
      points_[static_cast<std::size_t>(known - kFormats.begin())].push_back(point);
    }
  }

  const std::string& name_;
  int line_ = 0;
  std::vector<std::int64_t> sizes_;  // of m, by column
  std::array<std::vector<GemmShapes::Point>, core::compute::kGemmFormats> points_;
};

struct Table {
  std::shared_ptr<const MeasuredShapes> shapes;
  std::string identity;  // name and digest
};

std::map<std::string, Table> parse_compiled() {
  std::map<std::string, Table> tables;
  for (const ShapesFile& file : compiled_shapes()) {
    const std::string digest = core::sharing::KeyWriter("shapes").text(file.text).finish().hex();
    tables[file.name] = {
        std::make_shared<const MeasuredShapes>(parse_shapes(file.text, fmt::format("shapes/{}.csv", file.name))),
        fmt::format("{} {}", file.name, digest)};
  }
  return tables;
}

}  // namespace

std::vector<std::string> shape_table_names() {
  std::vector<std::string> names{"none"};
  for (const ShapesFile& file : compiled_shapes()) names.emplace_back(file.name);
  return names;
}

MeasuredShapes parse_shapes(std::string_view text, const std::string& name) {
  ShapesReader reader(name);
  reader.read(text);
  return reader.shapes();
}

void set_measured_shapes(core::compute::Gpu& gpu) {
  static const std::map<std::string, Table> tables = parse_compiled();
  if (gpu.measured_shapes == "none") return;
  const auto found = tables.find(gpu.measured_shapes);
  MANYWORLDS_CHECK(found != tables.end(), "no table of shapes '{}'", gpu.measured_shapes);
  gpu.shapes = found->second.shapes;
  gpu.measured_shapes = found->second.identity;
}

}  // namespace manyworlds::experiments
