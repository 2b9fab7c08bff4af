#include "farm/moves/moves_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/escape.hpp"
#include "farm/best/minimised_objective.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kRounding = 1e-12;  // of gaps: one that exceeds what is asked for by less is closed

std::string value_text(const MoveFindings& found, double value) {
  return io::with_si_prefix(value, found.unit);
}

std::string share_text(std::optional<double> share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : io::kMissing;
}

std::string table_text(const MoveFindings& found) {
  const auto row = [&](const char* name, const SimulatedPoint& point) {
    return std::vector<std::string>{name, value_text(found, point.value), io::with_si_prefix(point.step_s, "s"),
                                    share_text(found.gap_of(point))};
  };
  std::vector<std::vector<std::string>> lines{{"", found.objective, "step time", "others better by, at most"},
                                              row("best before the moves", found.before),
                                              row("best after the moves", found.best)};
  if (found.bound) lines.push_back({"proven bound of all points", value_text(found, *found.bound), "", ""});
  return io::align_columns(lines, {true, false, false, false});
}

std::string counts_text(const MoveFindings& found) {
  const MoveCounts& counts = found.counts;
  std::vector<std::vector<std::string>> lines;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) lines.push_back({io::group_digits(static_cast<double>(count)), what});
  };
  add(counts.met, "met before");
  add(counts.excluded, "excluded by a rule or by where");
  add(counts.too_large, "that do not fit into memory");
  add(counts.behind_sums, "whose sums over a micro-batch are behind what would be accepted");
  add(counts.behind_analytic, "whose analytic step is");
  add(counts.simulated, "simulated");
  std::string text =
      fmt::format("moves: {} drawn of {} (--moves), with seed {}, in {} rounds that were simulated\n",
                  io::group_digits(static_cast<double>(counts.drawn)),
                  io::group_digits(static_cast<double>(found.limits.moves)), found.limits.seed, found.rounds);
  text += io::align_columns(lines, {false, true}, "  ");
  text +=
      fmt::format("of the rounds, {} led on, and {} times the walk went back to the best that has neighbours left\n",
                  counts.accepted, counts.returns);
  if (counts.failed > 0) text += fmt::format("{} of those simulated have no result\n", counts.failed);
  return text;
}

std::string end_text(const MoveFindings& found) {
  const std::optional<double> gap = found.gap_of(found.best);
  const std::string open = gap ? fmt::format("another may be better by {:.2f} % at most", 100 * *gap)
                               : "how far others are from it is not known";
  switch (found.end) {
    case MovesEnd::proven:
      return fmt::format("proven: no point is better than the best by more than {:.2f} %\n", 100 * gap.value_or(0));
    case MovesEnd::moves:
      return fmt::format("not proven: {}; its moves are used up, more (--moves) or others (--seed) may find better\n",
                         open);
    case MovesEnd::stuck:
      return fmt::format("not proven: {}; no neighbour is left of what was simulated\n", open);
    case MovesEnd::listed:
      return fmt::format("not proven: {}; the sweep lists all points, so that none is left to move to\n", open);
    case MovesEnd::stopped:
      break;
  }
  return fmt::format("not proven: {}; stopped on request, and the same line goes on with it\n", open);
}

const char* name_of(MovesEnd end) {
  switch (end) {
    case MovesEnd::proven:
      return "proven";
    case MovesEnd::moves:
      return "moves";
    case MovesEnd::stuck:
      return "no_neighbours";
    case MovesEnd::listed:
      return "listed";
    case MovesEnd::stopped:
      break;
  }
  return "stopped";
}

nlohmann::ordered_json point_json(const MoveFindings& found, const SimulatedPoint& point) {
  nlohmann::ordered_json json{{found.objective, point.value},
                              {"step_time_s", point.step_s},
                              {"gap", nullptr},
                              {"run", point.run},
                              {"experiment", point.experiment}};
  if (const auto gap = found.gap_of(point)) json["gap"] = *gap;
  return json;
}

}  // namespace

std::optional<double> MoveFindings::gap_of(const SimulatedPoint& point) const {
  if (!bound) return std::nullopt;
  return share_between(minimised(*bound, objective), minimised(point.value, objective));
}

double MoveFindings::gain() const {
  return share_between(minimised(best.value, objective), minimised(before.value, objective));
}

bool MoveFindings::proven() const {
  const std::optional<double> open = gap_of(best);
  return open && *open <= gap + kRounding;
}

std::string moves_text(const MoveFindings& found, std::vector<std::string> run_line) {
  std::string text = fmt::format("{}: the best that was found, {}\n", found.name, found.best_axes);
  text += table_text(found) + fmt::format("gain of the moves: {:.2g} %\n", 100 * found.gain());
  if (found.counts.drawn > 0) text += counts_text(found);
  text += end_text(found);
  text += fmt::format("it is experiment {} of {}\n", found.best.experiment, found.best.run);
  run_line.insert(run_line.end(), found.run_arguments.begin(), found.run_arguments.end());
  return text + core::shell_line(run_line) + "\n";
}

nlohmann::ordered_json moves_json(const MoveFindings& found) {
  const MoveCounts& counts = found.counts;
  nlohmann::ordered_json json{{"name", found.name},
                              {"objective", found.objective},
                              {"before", point_json(found, found.before)},
                              {"best", point_json(found, found.best)}};
  json["best"]["axes"] = found.best_axes;
  json["best"]["run_arguments"] = found.run_arguments;
  json["bound"] = found.bound ? nlohmann::ordered_json(*found.bound) : nlohmann::ordered_json(nullptr);
  json["gain"] = found.gain();
  json["proven"] = found.proven();
  json["ended"] = name_of(found.end);
  json["seed"] = found.limits.seed;
  json["threshold"] = found.limits.threshold;
  json["rounds"] = found.rounds;
  json["moves"] = {{"limit", found.limits.moves},
                   {"drawn", counts.drawn},
                   {"met", counts.met},
                   {"excluded", counts.excluded},
                   {"out_of_memory", counts.too_large},
                   {"behind_sums", counts.behind_sums},
                   {"behind_analytic", counts.behind_analytic},
                   {"simulated", counts.simulated},
                   {"failed", counts.failed},
                   {"accepted", counts.accepted},
                   {"returns", counts.returns}};
  return json;
}

}  // namespace manyworlds::farm
