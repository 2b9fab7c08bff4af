#include "farm/check/check_report.hpp"

#include <fmt/format.h>

#include "farm/check/suggestions.hpp"
#include "farm/texts/step_text.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using Json = nlohmann::ordered_json;

const char* place_text(Place place) {
  return place == Place::inside ? "inside" : place == Place::below ? "below: faster" : "above: slower";
}

std::string seconds_text(double seconds) {
  return io::with_si_prefix(seconds, "s");
}

std::string range_text(double low, double high) {
  return fmt::format("{} to {}", seconds_text(low), seconds_text(high));
}

std::string count_text(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", io::group_digits(static_cast<double>(count)), count == 1 ? one : many);
}

/// Returns what the log is and which of its steps count.
std::string log_text(const CheckedRun& run) {
  const auto& steps = run.matched.steps;
  std::string text =
      fmt::format("{}: {}, {}", run.log.path, run.log.framework, count_text(steps.records, "record", "records"));
  if (steps.interval > 1) text += fmt::format(", each the mean over {} iterations", steps.interval);
  if (run.log.unit == experiments::logs::StepUnit::tokens_per_s_per_gpu) text += ", from tokens/s of a GPU";
  if (run.log.unit == experiments::logs::StepUnit::samples_per_s) text += ", from samples/s";
  if (run.log.running_average) text += ", each a mean over all steps so far";
  text += "\n";
  std::string left_out;
  const auto add = [&](std::size_t count, const std::string& what) {
    if (count > 0) left_out += fmt::format("{}{}", left_out.empty() ? "" : ", ", what);
  };
  add(steps.warm_up, fmt::format("{} of warm-up", steps.warm_up));
  add(run.matched.other_batch, fmt::format("{} of another global batch", run.matched.other_batch));
  add(static_cast<std::size_t>(run.log.replaced),
      fmt::format("{} before a restart with other arguments", run.log.replaced));
  add(static_cast<std::size_t>(run.log.unreadable),
      fmt::format("{} unreadable (the first on line {})", run.log.unreadable, run.log.first_unreadable));
  if (!left_out.empty()) text += fmt::format("left out          {}\n", left_out);
  std::string seen;
  if (steps.starts > 1) seen += fmt::format("{} starts", steps.starts);
  if (run.log.copies > 0) seen += fmt::format("{}{} copies by other ranks", seen.empty() ? "" : ", ", run.log.copies);
  if (run.log.checkpoints > 0) seen += fmt::format("{}{} checkpoints", seen.empty() ? "" : ", ", run.log.checkpoints);
  if (run.log.evaluations > 0) seen += fmt::format("{}{} evaluations", seen.empty() ? "" : ", ", run.log.evaluations);
  if (!seen.empty()) text += fmt::format("also in it        {}\n", seen);
  for (const std::string& note : run.matched.notes) text += fmt::format("note              {}\n", note);
  return text;
}

std::string interval_line(const char* name, const CheckedInterval& interval, double measured_s,
                          const std::string& basis) {
  return fmt::format("{:<18}{}: {} (measured {}; {:.0f} % of it is below), {}\n", name,
                     range_text(interval.low_s, interval.high_s), place_text(interval.place(measured_s)),
                     seconds_text(measured_s), 100 * interval.share_below, basis);
}

std::string own_basis(const CheckedRun& run) {
  return fmt::format("from {} of your own ({}) and the published",
                     count_text(run.evidence.logs.size(), "experiment", "experiments"),
                     count_text(run.evidence.rows, "row", "rows"));
}

std::string time_text(const CheckedRun& run) {
  const auto& steps = run.matched.steps;
  const std::string tenths =
      steps.records > 1 ? fmt::format(" (80 % of records {})", range_text(steps.low_s, steps.high_s)) : "";
  std::string text =
      fmt::format("step time         measured {}{}, predicted {}{}: {:+.1f} %\n", seconds_text(steps.median_s), tenths,
                  run.published ? "" : "at least ", seconds_text(run.predicted_s), 100 * run.difference());
  if (run.published)
    text += interval_line("80 % interval", *run.published, steps.median_s,
                          "from errors on published runs (" + run.basis.basis + ")");
  if (run.own) text += interval_line("with your own", *run.own, steps.median_s, own_basis(run));
  if (run.evidence.outdated > 0)
    text += fmt::format(
        "                  {} of your table fit and were predicted by another version of the program: left "
        "out until their logs are checked with --learn again\n",
        count_text(run.evidence.outdated, "row", "rows"));
  return text;
}

std::string memory_lines(const CheckedRun& run) {
  std::string text;
  for (const CheckedMemory& one : run.memory)
    text += fmt::format(
        "memory {:<11}measured {}, predicted {}: {:+.1f} % (on published runs it is {:.1f} % off in the mean)\n",
        one.name, gib_text(static_cast<double>(one.measured)), gib_text(static_cast<double>(one.predicted)),
        100 * one.difference(), 100 * usual_memory_error(run.basis.kind));
  if (run.memory.empty()) text += "memory            the log prints no peak\n";
  if (!run.predicted_to_fit)
    text += "                  the experiment was predicted not to fit; it ran, so it was simulated\n";
  return text;
}

Json interval_json(const CheckedInterval& interval, double measured_s) {
  const Place place = interval.place(measured_s);
  return {{"low_s", interval.low_s},
          {"high_s", interval.high_s},
          {"share_below", interval.share_below},
          {"place", place == Place::inside  ? "inside"
                    : place == Place::below ? "below"
                                            : "above"}};
}

}  // namespace

std::string check_text(const CheckedRun& run) {
  std::string text = log_text(run) + time_text(run) + memory_lines(run);
  if (run.suggestions.empty()) return text + "nothing systematic is to be seen\n";
  text += "what it suggests, none of it proven\n";
  for (const std::string& one : run.suggestions) text += fmt::format("- {}\n", one);
  return text;
}

Json check_json(const CheckedRun& run) {
  const auto& steps = run.matched.steps;
  Json object{{"log", run.log.path},
              {"framework", run.log.framework},
              {"records", steps.records},
              {"interval", steps.interval},
              {"warm_up", steps.warm_up},
              {"starts", steps.starts},
              {"other_batch", run.matched.other_batch},
              {"replaced", run.log.replaced},
              {"unreadable", run.log.unreadable},
              {"copies", run.log.copies},
              {"outliers", steps.outliers},
              {"measured",
               {{"median_s", steps.median_s},
                {"low_s", steps.low_s},
                {"high_s", steps.high_s},
                {"mean_s", steps.mean_s},
                {"drift", steps.drift ? Json(*steps.drift) : Json()}}},
              {"predicted_s", run.predicted_s},
              {"difference", run.difference()},
              {"predicted_to_fit", run.predicted_to_fit}};
  if (run.published) {
    object["published"] = interval_json(*run.published, steps.median_s);
    object["published"]["basis"] = run.basis.basis;
  }
  if (run.own) {
    object["own"] = interval_json(*run.own, steps.median_s);
    object["own"]["experiments"] = run.evidence.logs.size();
    object["own"]["rows"] = run.evidence.rows;
  }
  if (run.evidence.outdated > 0) object["own_outdated"] = run.evidence.outdated;
  object["memory"] = Json::object();
  for (const CheckedMemory& one : run.memory)
    object["memory"][one.name] = {{"measured_bytes", one.measured},
                                  {"predicted_bytes", one.predicted},
                                  {"difference", one.difference()},
                                  {"usual_error", usual_memory_error(run.basis.kind)}};
  object["notes"] = run.matched.notes;
  object["suggestions"] = run.suggestions;
  return object;
}

}  // namespace manyworlds::farm
