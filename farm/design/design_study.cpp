#include "farm/design/design_study.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "experiments/silicon/chip_gpu.hpp"

namespace manyworlds::farm::design {
namespace {

namespace silicon = experiments::silicon;

constexpr const char* kSearchedFidelity = "analytic";
constexpr double kSecondsPerYear = 365.25 * 86'400, kSecondsPerHour = 3'600, kWattsPerKw = 1'000;

/// Appraises and simulates the chips of one file.
class Designer {
 public:
  Designer(const DesignFile& file, const DesignJob& job, const StudyOptions& options)
      : file_(file), job_(job), options_(options) {}

  Design design(const std::string& title, const silicon::Chip& chip, const silicon::Process& process,
                const std::string& fidelity) const {
    Design design{title, chip, appraise(chip, process), "", {}, 0};
    design.over = over_budget(design.appraisal, file_.budget, job_.gpus());
    design.step = job_.step(chip, design.appraisal.power, fidelity);
    design.usd_per_token = usd_per_token(file_.money, design.appraisal, design.step, job_.gpus());
    return design;
  }
  Design shown(const std::string& title, const silicon::Chip& chip) const {
    return design(title, chip, file_.process, options_.fidelity);
  }

  Problem problem() {
    Problem problem;
    problem.dimensions = file_.search;
    problem.fits = [this](const Point& point) {
      return over_budget(appraise(chip_at(file_, point), file_.process), file_.budget, job_.gpus()).empty();
    };
    problem.costs = [this](const std::vector<Point>& points) { return costs(points); };
    const Point lowest = lowest_corner(problem);
    if (!problem.fits(lowest))
      throw core::InputError(
          "even the least units of 'search' exceed a limit: " +
              over_budget(appraise(chip_at(file_, lowest), file_.process), file_.budget, job_.gpus()),
          file_.name, file_.search_line);
    return problem;
  }

 private:
  std::vector<double> costs(const std::vector<Point>& points) {
    std::vector<double> result(points.size());
    for_each_in_threads(points.size(), options_.threads, [&](std::size_t i) {
      const Design one = design("", chip_at(file_, points[i]), file_.process, kSearchedFidelity);
      const double cost = one.cost(file_.aim);
      result[i] = std::isnan(cost) ? std::numeric_limits<double>::infinity() : cost;
    });
    simulated_ += points.size();
    if (options_.progress) options_.progress(simulated_, 2 * options_.evaluations);
    return result;
  }

  const DesignFile& file_;
  const DesignJob& job_;
  const StudyOptions& options_;
  std::size_t simulated_ = 0;
};

void add_searched(Study& study, Designer& designer) {
  const DesignFile& file = study.file;
  const Problem problem = designer.problem();
  const Found found = optimise(problem, study.options.seed, study.options.evaluations);
  const Found drawn = draw(problem, study.options.seed, study.options.evaluations);
  if (std::isinf(found.cost) && std::isinf(drawn.cost))
    throw core::InputError(fmt::format("no design of {} can train the job: {}", 2 * study.options.evaluations,
                                       designer.shown("", chip_at(file, found.best)).step.why),
                           file.name, file.search_line);
  const auto area = [&](const Point& point) { return die_area(chip_at(file, point), file.process).total(); };
  const double limit = file.budget.area_mm2 > 0 ? file.budget.area_mm2 : silicon::kReticle_mm2;
  study.designs.push_back(designer.shown("best found", chip_at(file, found.best)));
  study.designs.push_back(designer.shown("even split", chip_at(file, even_split(problem, area, limit))));
  study.designs.push_back(designer.shown("best of draws", chip_at(file, drawn.best)));
}

}  // namespace

double usd_per_token(const Money& money, const silicon::Appraisal& chip, const JobStep& step, std::int64_t gpus) {
  if (!step.ran()) return std::numeric_limits<double>::quiet_NaN();
  const double usd_per_s = chip.cost.total_usd() / (money.years * kSecondsPerYear) +
                           chip.power.total() / kWattsPerKw / kSecondsPerHour * money.usd_per_kwh;
  return usd_per_s * static_cast<double>(gpus) * step.step_s / step.tokens;
}

Study study(const DesignFile& file, const DesignJob& job, const StudyOptions& options) {
  Study study{file, options, {}, {}};
  Designer designer(file, job, options);
  study.designs.push_back(designer.shown("as described", file.chip));
  if (study.searched()) add_searched(study, designer);
  const silicon::KnownChip& known = job.known();
  study.designs.push_back(designer.design(known.gpu, known.chip, silicon::process_of(known.node), options.fidelity));
  study.measured = job.measured_step(options.fidelity);
  return study;
}

}  // namespace manyworlds::farm::design
