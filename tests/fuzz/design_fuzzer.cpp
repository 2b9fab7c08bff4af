// Any text as a design: a file that is refused, or a GPU that can be appraised, whose search keeps to its budgets.
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "farm/design/design_file.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::design;
namespace silicon = manyworlds::experiments::silicon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const DesignFile file = parse_design({reinterpret_cast<const char*>(data), size}, "design.yaml");
    const auto appraisal = [&](const Point& point) { return appraise(chip_at(file, point), file.process); };
    const silicon::Appraisal described = appraise(file.chip, file.process);
    fuzz::require(described.area.total() > 0 && described.cost.yield >= 0 && described.cost.yield <= 1);
    if (file.search.empty()) return 0;
    Problem problem;
    problem.dimensions = file.search;
    problem.fits = [&](const Point& point) { return over_budget(appraisal(point), file.budget, 8).empty(); };
    problem.costs = [&](const std::vector<Point>& points) {
      std::vector<double> costs;
      for (const Point& point : points) {
        fuzz::require(problem.fits(point) && point_of(file, chip_at(file, point)) == point);
        costs.push_back(appraisal(point).cost.total_usd() - silicon::matrix_tflops(chip_at(file, point)));
      }
      return costs;
    };
    if (!problem.fits(lowest_corner(problem))) return 0;
    const Found found = optimise(problem, 1, 24);
    fuzz::require(found.evaluated <= 24 && problem.fits(found.best));
  } catch (const core::InputError&) {
  }
  return 0;
}
