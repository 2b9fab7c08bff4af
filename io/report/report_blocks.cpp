#include "io/report/report_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/plural.hpp"
#include "core/base/version.hpp"
#include "core/sharing/key.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/tree/yaml.hpp"
#include "io/report/proof_blocks.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

using experiments::import::Node;

constexpr std::size_t kMaxNearlyFitting = 8;  // rows in the table of layouts that nearly fit
constexpr std::size_t kMaxAxisValues = 12;    // values of an axis that are listed
constexpr std::size_t kMaxFrontRows = 15;
constexpr std::size_t kMaxReasons = 50;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

/// Flattens a YAML tree into lines of "key.key" and value.
void flatten(const Node& node, const std::string& name, std::vector<std::vector<std::string>>& to) {
  if (node.kind == Node::Kind::mapping) {
    for (const auto& entry : node.entries) flatten(entry.value, name.empty() ? entry.key : name + "." + entry.key, to);
    return;
  }
  std::string text = node.text;
  if (node.kind == Node::Kind::sequence) {
    std::vector<std::string> items;
    for (const Node& item : node.items) {
      std::vector<std::vector<std::string>> inner;
      flatten(item, "", inner);
      std::string words;
      for (const auto& line : inner)
        words += (words.empty() ? "" : " ") + (line[0].empty() ? line[1] : line[0] + "=" + line[1]);
      items.push_back(words);
    }
    text = fmt::format("{}", fmt::join(items, ", "));
  }
  to.push_back({name, text});
}

/// Returns the settings in the text of the sweep. The text may be unreadable if another version wrote it; then nothing
/// is returned.
std::vector<std::vector<std::string>> spec_settings(const Results& results, std::string& name) {
  std::vector<std::vector<std::string>> lines{{"setting", "value"}};
  try {
    const Node spec = experiments::import::parse_yaml(results.spec, "sweep");
    for (const auto& entry : spec.entries)
      if (entry.key == "name")
        name = entry.value.text;
      else if (entry.key == "base")
        flatten(entry.value, "", lines);
      else
        flatten(entry.value, entry.key, lines);
  } catch (const core::InputError&) {
    lines.resize(1);
  }
  return lines;
}

/// Replaces the fidelity in the settings by what the rows have, where a search simulated the best of what it screened
/// otherwise.
void tell_fidelities(const Results& results, std::vector<std::vector<std::string>>& settings) {
  if (results.experiments.find("fidelity") == nullptr) return;
  std::vector<std::string> found;
  for (const auto& [fidelity, count] : results.experiments.counts_of("fidelity"))
    if (!fidelity.empty()) found.push_back(fmt::format("{} ({})", fidelity, group_digits(static_cast<double>(count))));
  for (auto& line : settings)
    if (line[0] == "fidelity" && (found.size() > 1 || (found.size() == 1 && !found[0].starts_with(line[1] + " "))))
      line[1] = fmt::format("{}; experiments with: {}", line[1], fmt::join(found, ", "));
}

std::string status_words(const std::string& status) {
  if (status == "out_of_memory") return "do not fit into memory";
  if (status == "too_large") return "exceed their limit";
  if (status == "bounded") return "left out, as their lower bounds are behind the best that are asked for";
  return status;
}

std::string count_text(const Results& results) {
  const std::size_t rows = results.experiments.rows();
  std::string text = fmt::format("{} {}: ", group_digits(static_cast<double>(rows)), core::plural(rows, "experiment"));
  for (const auto& [status, count] : results.experiments.counts_of("status"))
    text += fmt::format("{} {}, ", group_digits(static_cast<double>(count)), status_words(status));
  return text + fmt::format("and {} combinations left out as invalid.",
                            group_digits(static_cast<double>(results.excluded.rows())));
}

KeyValues key_values_of(const Report& report) {
  const Results& results = *report.results;
  KeyValues key_values;
  const auto add = [&](const std::string& value, const std::string& what) {
    key_values.entries.emplace_back(value, what);
  };
  if (!report.ranking.rows.empty()) {
    const std::size_t best = report.ranking.rows.front().row;
    const std::string peak = mfu_peak_text(results.experiments, best);
    for (const auto& [name, what] :
         {std::pair<const char*, std::string>("step_time_s", "step time of the best"),
          std::pair<const char*, std::string>("tokens_per_s_per_gpu", "tokens/s/GPU"),
          std::pair<const char*, std::string>("mfu", "MFU" + (peak.empty() ? peak : " of " + peak)),
          std::pair<const char*, std::string>("memory_peak_bytes", "its peak memory"),
          std::pair<const char*, std::string>("usd_per_million_tokens", "a million tokens"),
          std::pair<const char*, std::string>("train_usd", "the whole training")})
      if (const Column* column = results.experiments.find(name);
          column != nullptr && format_cell(column, best) != kMissing)
        add(format_cell(column, best), what);
    const Column* fidelity = results.experiments.find("fidelity");
    if (fidelity != nullptr && fidelity->text_at(best) == "analytic")
      add("analytic", "lower bounds; no packets were simulated");
    if (fidelity != nullptr && fidelity->text_at(best) == "fluid")
      add("fluid", "collectives share links max-min fairly; no packets were simulated");
  }
  add(group_digits(static_cast<double>(report.ranking.candidates)), "experiments ranked");
  return key_values;
}

/// Returns a sentence on the best layout and how certain its first place is.
std::string verdict_text(const Report& report) {
  const Ranking& ranking = report.ranking;
  if (ranking.rows.empty()) return "No experiment that ran can be ranked.";
  const std::string best = fmt::format("The best: {}.", ranking.rows.front().layout);
  if (ranking.rows.front().distinction == Distinction::unknown) return best;
  const auto count = [&](Distinction distinction) {
    return std::count_if(ranking.rows.begin(), ranking.rows.end(),
                         [&](const auto& row) { return row.distinction == distinction; });
  };
  return fmt::format(
      "{}{} Of the {} after it that are listed, {} are within model error, {} probably slower, {} slower.",
      unclear_order_note(ranking), best, ranking.rows.size() - 1, count(Distinction::indistinguishable),
      count(Distinction::overlapping), count(Distinction::distinguishable));
}

/// Returns the parts of each ranked step as shares of it, without parts that are zero everywhere.
TableBlock breakdown_lines(const Report& report) {
  const Table& table = report.results->experiments;
  TableBlock result{{{"#", "layout"}}, {false, true}, "The parts as shares"};
  std::vector<const Column*> parts;
  for (const core::workload::StepPartInfo& info : core::workload::kStepParts) {
    const Column* part = table.find(info.column);
    if (part == nullptr || std::none_of(report.ranking.rows.begin(), report.ranking.rows.end(),
                                        [&](const auto& row) { return part->number_at(row.row) > 0; }))
      continue;
    parts.push_back(part);
    result.lines[0].emplace_back(info.name());
    result.left_aligned.push_back(false);
  }
  const Column* step = table.find("step_time_s");
  for (const Ranking::Row& row : report.ranking.rows) {
    std::vector<std::string> line{std::to_string(result.lines.size()), row.distinct_settings};
    for (const Column* part : parts) {
      const double share = part->number_at(row.row) / step->number_at(row.row);
      line.push_back(std::isnan(share) ? kMissing : percent(share));
    }
    result.lines.push_back(std::move(line));
  }
  return result;
}

TableBlock front_lines(const Report& report, const ParetoFront& front) {
  TableBlock result{{{"id", "layout", "tokens/s/GPU", front.title}}, {false, true, false, false}, "The front"};
  const Axes axes(*report.results);
  // A short front is shown completely; of a long one its ends and evenly spaced rows between them.
  const std::size_t count = std::min(front.rows.size(), kMaxFrontRows);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = front.rows[count == 1 ? 0 : i * (front.rows.size() - 1) / (count - 1)];
    result.lines.push_back({report.results->experiments.text_at("id", row), axes.layout(row),
                            format_cell(report.throughput, row), format_cell(front.cost, row)});
  }
  return result;
}

TableBlock effect_lines(const Report& report, const AxisEffect& effect) {
  const Column& by = *report.objective.column;
  TableBlock result{{{effect.name, "ran", "out of memory", "best", "median", "won", "relative to best"}},
                    {true, false, false, false, false, false, false}};
  for (std::size_t i = 0; i < std::min(effect.values.size(), kMaxAxisValues); ++i) {
    const AxisValue& value = effect.values[i];
    result.lines.push_back({value.value, fmt::format("{} of {}", value.ran, value.experiments),
                            std::to_string(value.out_of_memory), format_value(by, value.best),
                            format_value(by, value.median),
                            value.sets == 0 ? kMissing : fmt::format("{} of {}", value.wins, value.sets),
                            value.sets == 0 ? kMissing : percent(value.relative_to_best)});
  }
  return result;
}

/// Reorders the columns so that the most important values come first and the descriptions last: a narrow screen shows
/// only the first few columns.
TableBlock reorder_columns(RankingTable ranking) {
  const std::vector<std::string> last{"layout", "largest loss", "80 % interval", "id"};
  std::vector<std::size_t> order;
  const auto& titles = ranking.lines.front();
  for (std::size_t i = 0; i < titles.size(); ++i)
    if (std::find(last.begin(), last.end(), titles[i]) == last.end()) order.push_back(i);
  for (const std::string& title : last)
    if (const auto at = std::find(titles.begin(), titles.end(), title); at != titles.end())
      order.push_back(static_cast<std::size_t>(at - titles.begin()));
  TableBlock result;
  for (const std::size_t column : order) result.left_aligned.push_back(ranking.left_aligned[column]);
  for (const auto& line : ranking.lines) {
    auto& to = result.lines.emplace_back();
    for (const std::size_t column : order) to.push_back(line[column]);
  }
  return result;
}

/// Says how the best is launched.
void add_launch(Report& report, const LaunchText& launch) {
  const std::string command = launch.command.empty() ? "manyworlds top RUN --emit TARGET" : launch.command;
  report.blocks.push_back(
      Paragraph{fmt::format("Launch flags of the best: {} (with --experiment ID those of another).", command)});
  if (!launch.text.empty()) report.blocks.push_back(CodeBlock{"Launch flags of the best", launch.text, ""});
}

void add_best(Report& report, const LaunchText& launch) {
  auto& to = report.blocks;
  to.push_back(Heading{"The best", "best"});
  to.push_back(Paragraph{verdict_text(report)});
  const RankingTable best = render_table(*report.results, report.ranking);
  to.push_back(reorder_columns(best));
  for (std::string_view footer = best.footer; !footer.empty();) {
    const std::size_t end = std::min(footer.find('\n'), footer.size() - 1);
    to.push_back(Paragraph{std::string(footer.substr(0, footer[end] == '\n' ? end : end + 1))});
    footer.remove_prefix(end + 1);
  }
  if (report.ranking.rows.empty()) return;
  add_launch(report, launch);
  to.push_back(Heading{"Where the time of a step goes", "time"});
  to.push_back(Paragraph{
      "Mean over ranks: what their compute streams did, and what they waited for. Exposed communication is "
      "what no kernel hid. Slowed is what kernels take longer beside collectives; stall is waiting for other members "
      "of a collective, bubble for other stages of the pipeline, host for kernels to be launched."});
  to.push_back(Picture{Picture::Kind::breakdown, "breakdown", "step time by what it is spent on"});
  to.push_back(breakdown_lines(report));
  to.push_back(Paragraph{
      "One of them kernel by kernel: manyworlds run SWEEP.yaml --experiment ID --timeline step.json.gz --schedule "
      "pipeline.svg, where SWEEP.yaml is the sweep at the end of this page."});
}

void add_fronts(Report& report) {
  if (report.fronts.empty()) return;
  auto& to = report.blocks;
  to.push_back(Heading{"Efficiency (Pareto front)", "pareto"});
  to.push_back(Paragraph{"The line connects the Pareto-optimal layouts: no other layout is better in both."});
  for (std::size_t i = 0; i < report.fronts.size(); ++i) {
    const ParetoFront& front = report.fronts[i];
    to.push_back(Heading{"Tokens/s/GPU against " + front.title, "", 3});
    to.push_back(
        Picture{Picture::Kind::pareto, "pareto-" + front.cost->name, "tokens/s/GPU against " + front.title, i});
    to.push_back(front_lines(report, front));
    if (front.rows.size() > kMaxFrontRows)
      to.push_back(Paragraph{fmt::format("{} of the {} on the front, evenly.", kMaxFrontRows, front.rows.size())});
  }
}

void add_effects(Report& report) {
  if (report.effects.empty()) return;
  auto& to = report.blocks;
  to.push_back(Heading{"Effect of every axis", "axes"});
  to.push_back(Paragraph{
      fmt::format("By {}. Each value is compared with otherwise identical layouts. Won: how often it was the best "
                  "of them. Relative to best: its geometric mean against the best. Bars are the middle half of what "
                  "ran.",
                  report.objective.column->name)});
  for (std::size_t i = 0; i < report.effects.size(); ++i) {
    const AxisEffect& effect = report.effects[i];
    to.push_back(Heading{effect.axis, "", 3});
    to.push_back(Paragraph{fmt::format("The worst value costs {} even with everything else re-optimised.",
                                       percent(effect.worst_value_loss))});
    to.push_back(Picture{Picture::Kind::effect, "axis-" + effect.axis, effect.axis, i});
    to.push_back(effect_lines(report, effect));
    if (effect.values.size() > kMaxAxisValues)
      to.push_back(Paragraph{fmt::format("and {} more values.", effect.values.size() - kMaxAxisValues)});
  }
}

void add_failures(Report& report) {
  const Results& results = *report.results;
  auto& to = report.blocks;
  const auto counts = results.experiments.counts_of("status");
  const auto count_of = [&](const char* status) {
    const auto found = counts.find(status);
    return found == counts.end() ? std::size_t{0} : found->second;
  };
  to.push_back(Heading{"What did not run", "not"});
  to.push_back(Paragraph{
      fmt::format("{} do not fit into memory, {} failed, {} exceed their limit, {} are pending{}; {} "
                  "combinations were left out as invalid.",
                  count_of("out_of_memory"), count_of("failed"), count_of("too_large"), count_of("pending"),
                  count_of("bounded") == 0
                      ? ""
                      : fmt::format(", {} have lower bounds behind the best that are asked for", count_of("bounded")),
                  results.excluded.rows())});
  if (const auto nearly = nearly_fitting(results, kMaxNearlyFitting); !nearly.empty()) {
    const Axes axes(results);
    TableBlock lines{{{"id", "layout", "needs", "of", "too much by"}}, {false, true, false, false, false}};
    for (const auto& [row, need] : nearly)
      lines.lines.push_back({results.experiments.text_at("id", row), axes.layout(row),
                             format_cell(results.experiments.find("memory_peak_bytes"), row),
                             format_cell(results.experiments.find("gpu_memory_bytes"), row), percent(need - 1)});
    to.push_back(Heading{"Out of memory, those that nearly fit first", "", 3});
    to.push_back(std::move(lines));
  }
  if (const auto failures = group_failures(results); !failures.empty()) {
    TableBlock lines{{{"status", "experiments", "ids", "reason"}}, {true, false, true, true}};
    for (std::size_t i = 0; i < std::min(failures.size(), kMaxReasons); ++i) {
      std::vector<std::string> ids;
      for (const std::size_t row : failures[i].first) ids.push_back(results.experiments.text_at("id", row));
      if (failures[i].count > ids.size()) ids.emplace_back("…");
      lines.lines.push_back({failures[i].status, std::to_string(failures[i].count),
                             fmt::format("{}", fmt::join(ids, " ")), failures[i].reason});
    }
    to.push_back(Heading{"Failed", "", 3});
    to.push_back(std::move(lines));
    if (failures.size() > kMaxReasons)
      to.push_back(Paragraph{fmt::format("and {} more reasons.", failures.size() - kMaxReasons)});
  }
  TableBlock excluded{{{"rule", "combinations", "for example"}}, {true, false, true}};
  std::map<std::string, std::size_t> example;
  for (std::size_t row = 0; row < results.excluded.rows(); ++row)
    example.try_emplace(results.excluded.text_at("rule", row), row);
  for (const auto& [rule, count] : results.excluded.counts_of("rule"))
    excluded.lines.push_back({rule, std::to_string(count), results.excluded.text_at("reason", example.at(rule))});
  if (excluded.lines.size() == 1) return;
  to.push_back(Heading{"Left out as invalid", "", 3});
  to.push_back(std::move(excluded));
}

void add_sharing(Report& report) {
  const Results& results = *report.results;
  const auto number = [&](const char* name) { return provenance_number(results, name); };
  TableBlock lines{{{"what", "used", "computed", "uses per computation"}}, {true, false, false, false}};
  const auto add = [&](const char* what, double used, double computed) {
    if (used > 0)
      lines.lines.push_back({what, group_digits(used), group_digits(computed),
                             computed > 0 && used >= computed ? with_si_prefix(used / computed, "") : kMissing});
  };
  add("kernels", number("kernel_uses"), static_cast<double>(results.kernels.rows()));
  add("collectives", number("collective_uses"), static_cast<double>(results.collectives.rows()));
  add("episodes (contending collectives)", number("episode_uses"), static_cast<double>(results.episodes.rows()));
  add("link-hops (packets times links)", number("link_hops_transferred"), number("link_hops_simulated"));
  if (lines.lines.size() == 1) return;
  report.blocks.push_back(Heading{"Sharing", "sharing"});
  report.blocks.push_back(std::move(lines));
  report.blocks.push_back(Paragraph{fmt::format(
      "An experiment that repeats itself counts here too. Of the link-hops skipped, {} are those of "
      "experiments whose step is that of another, {} of collectives that had run on equal links before, {} "
      "were skipped as whole periods, and {} at a constant rate; the others are of equal episodes, clusters "
      "and ranks. Of the tasks, {} were computed, {} came from the journal, and {} from the store.",
      group_digits(number("link_hops_skipped_steps")), group_digits(number("link_hops_skipped_collectives")),
      group_digits(number("link_hops_skipped_periods")), group_digits(number("link_hops_skipped_rate")),
      group_digits(number("tasks_computed")), group_digits(number("tasks_from_journal")),
      group_digits(number("tasks_from_store")))});
  if (const std::string alone = one_by_one_text(results); !alone.empty())
    report.blocks.push_back(Paragraph{"Experiments " + alone + "."});
}

/// Names the guessed figures by which intervals are wider.
void add_guesses(Report& report) {
  const io::Table& experiments = report.results->experiments;
  const Column* figures = experiments.find("step_time_guesses");
  std::map<std::string, std::vector<std::size_t>> rows;
  for (std::size_t row = 0; figures != nullptr && row < figures->rows(); ++row)
    if (!figures->text_at(row).empty()) rows[figures->text_at(row)].push_back(row);
  for (const auto& [named, with_them] : rows) {
    const std::string widens = format_guesses(experiments, with_them);
    report.blocks.push_back(
        Paragraph{widens.empty() ? fmt::format("Guessed figures of {} experiments: {}.", with_them.size(), named)
                                 : fmt::format("Guessed figures widen the intervals of {} experiments by {}: {}.",
                                               with_them.size(), widens, named)});
  }
}

void add_accuracy(Report& report) {
  std::set<std::string> chips;
  const Column *chip = report.results->experiments.find("step_time_basis_gpu"),
               *kind = report.results->experiments.find("step_time_basis_kind");
  std::set<std::pair<std::string, std::string>> wanted;
  for (std::size_t row = 0; chip != nullptr && kind != nullptr && row < chip->rows(); ++row)
    if (!chip->text_at(row).empty()) wanted.emplace(chip->text_at(row), kind->text_at(row));
  if (wanted.empty()) return;
  report.blocks.push_back(Heading{"Accuracy", "trust"});
  for (auto& each : experiments::measured::read_residuals(
           experiments::import::parse_csv(experiments::measured::compiled_table("residuals"), "residuals.csv"))) {
    if (wanted.count({each.gpu, each.kind}) == 0) continue;
    FamilyError error{std::move(each), 0, 0};
    for (const double off : error.residuals.steps) {
      error.mean += std::abs(off) / static_cast<double>(error.residuals.steps.size());
      error.largest = std::max(error.largest, std::abs(off));
    }
    report.errors.push_back(std::move(error));
  }
  std::stable_sort(report.errors.begin(), report.errors.end(),
                   [](const FamilyError& a, const FamilyError& b) { return a.mean > b.mean; });
  std::vector<std::string> words;
  for (const auto& [gpu, sort] : wanted) words.push_back(fmt::format("{} layouts on {}", sort, gpu));
  std::string text = fmt::format(
      "Published training steps like these ({}), each family of them predicted with constants "
      "fitted to the others: measured over predicted time, less 1.",
      fmt::join(words, ", "));
  if (report.errors.empty()) text = fmt::format("No published training step of {} is known.", fmt::join(words, ", "));
  report.blocks.push_back(
      Paragraph{text + " The 80 % intervals are made of these and, where there are few, of other GPUs'."});
  add_guesses(report);
  if (report.errors.empty()) return;
  report.blocks.push_back(Picture{Picture::Kind::accuracy, "accuracy", "measured over predicted step time, less 1"});
  TableBlock lines{{{"family", "GPU", "layouts", "steps", "mean error", "largest", "from", "to"}},
                   {true, true, true, false, false, false, false, false}};
  for (const FamilyError& error : report.errors)
    lines.lines.push_back({error.residuals.family, error.residuals.gpu, error.residuals.kind,
                           std::to_string(error.residuals.rows), percent(error.mean), percent(error.largest),
                           percent(error.residuals.steps.front()), percent(error.residuals.steps.back())});
  report.blocks.push_back(std::move(lines));
}

void add_origin(Report& report, std::vector<std::vector<std::string>> spec_settings) {
  const Results& results = *report.results;
  auto& to = report.blocks;
  to.push_back(Heading{"Specification and provenance", "origin"});
  if (spec_settings.size() > 1) to.push_back(TableBlock{std::move(spec_settings), {true, true}});
  TableBlock lines{{{"", ""}}, {true, true}};
  lines.lines.push_back({"report written by", fmt::format("manyworlds {}", core::version())});
  for (const Attribute& attribute : results.provenance)
    lines.lines.push_back(
        {attribute.name, std::visit([](const auto& value) { return fmt::format("{}", value); }, attribute.value)});
  to.push_back(std::move(lines));
  to.push_back(CodeBlock{"The sweep", results.spec});
}

/// Returns the columns of which a layout should need little, with their titles.
std::vector<std::pair<const Column*, std::string>> cost_columns(const Table& table) {
  std::vector<std::pair<const Column*, std::string>> result;
  for (const auto& [name, title] :
       {std::pair("memory_peak_bytes", "peak memory"), std::pair("usd_per_million_tokens", "price of a million tokens"),
        std::pair("gpu_energy_per_token_j", "the GPUs' energy for a token"),
        std::pair("energy_per_token_j", "the building's energy for a token"),
        std::pair("train_usd", "price of the training run")})
    if (const Column* column = table.find(name)) result.emplace_back(column, title);
  return result;
}

}  // namespace

Report make_report(const Results& results, const TopOptions& options, const LaunchText& launch) {
  Report report;
  report.results = &results;
  report.ranking = rank_experiments(results, options);
  report.objective = {results.experiments.find(report.ranking.by), report.ranking.descending};
  report.throughput = results.experiments.find("tokens_per_s_per_gpu");
  if (report.throughput != nullptr)
    for (const auto& [cost, title] : cost_columns(results.experiments))
      if (auto rows = pareto_front(results, *cost, *report.throughput); !rows.empty())
        report.fronts.push_back({cost, title, std::move(rows)});
  report.effects = axis_effects(results, report.objective);
  std::erase_if(report.effects, [](const AxisEffect& effect) {
    return std::all_of(effect.values.begin(), effect.values.end(),
                       [](const AxisValue& value) { return value.ran == 0; });
  });
  auto settings = spec_settings(results, report.title);
  tell_fidelities(results, settings);
  if (report.title.empty()) report.title = "A sweep";
  report.blocks = {Paragraph{count_text(results)}, key_values_of(report)};
  add_best(report, launch);
  add_fronts(report);
  add_effects(report);
  report.blocks.push_back(Heading{"All experiments", "all"});
  report.blocks.push_back(AllExperiments{});
  add_failures(report);
  add_accuracy(report);
  add_origin(report, std::move(settings));
  report.proof = best_proof(results);
  for (Block& block : proof_of_best(results, report.proof)) report.blocks.push_back(std::move(block));
  add_sharing(report);
  return report;
}

}  // namespace manyworlds::io
