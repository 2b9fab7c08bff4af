#include "farm/results/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/status/progress.hpp"
#include "io/ranking/best_proof.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using io::group_digits;
using Json = nlohmann::ordered_json;

std::map<std::string, std::size_t> statuses(const io::Results& results) {
  const io::Column* status = results.experiments.find("status");
  MANYWORLDS_CHECK(status && status->is_text(), "results without a status");
  return results.experiments.counts_of("status");
}

constexpr std::size_t kMaxRules = 3;

/// Returns the rules that excluded most combinations, each with the first of these; its reason may show how to correct
/// the sweep.
std::string exclusions_text(const io::Table& excluded) {
  const io::Column *rule = excluded.find("rule"), *reason = excluded.find("reason");
  if (rule == nullptr || reason == nullptr) return "";
  std::map<std::string, std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < excluded.rows(); ++row) rows_of[rule->text_at(row)].push_back(row);
  std::vector<std::pair<std::string, std::vector<std::size_t>>> rules(rows_of.begin(), rows_of.end());
  std::stable_sort(rules.begin(), rules.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (std::size_t i = 0; i < std::min(rules.size(), kMaxRules); ++i)
    text += fmt::format("  {} by {}: {}\n", rules[i].second.size(), rules[i].first,
                        reason->text_at(rules[i].second.front()));
  if (rules.size() > kMaxRules)
    text += fmt::format("  and {} more rules (--dry-run lists all)\n", rules.size() - kMaxRules);
  return text;
}

}  // namespace

Json summary_json(const io::Results& results) {
  Json result;
  result["experiments"] = results.experiments.rows();
  for (const char* status : {"ran", "bounded", "out_of_memory", "too_large", "failed", "pending"}) {
    const auto counted = statuses(results);
    const auto found = counted.find(status);
    result[status] = found == counted.end() ? 0 : found->second;
  }
  result["excluded"] = results.excluded.rows();
  result["subsimulations"] = {{"kernels", results.kernels.rows()},
                              {"collectives", results.collectives.rows()},
                              {"episodes", results.episodes.rows()}};
  for (const io::Attribute& attribute : results.provenance)
    std::visit([&](const auto& value) { result["provenance"][attribute.name] = value; }, attribute.value);
  return result;
}

/// Returns what is proven of the best that were asked for; empty if nobody asked.
std::string best_text(const io::Results& results) {
  const double best = io::provenance_number(results, "best");
  if (!(best > 0)) return "";
  const auto counts = statuses(results);
  const auto count_of = [&](const char* status) { return counts.count(status) > 0 ? counts.at(status) : 0; };
  std::string text;
  if (const double points = io::provenance_number(results, "space_points"); points > 0)
    text += fmt::format("{} points: {} bounds list the best {} of them, no other is better than these bounds\n",
                        group_digits(points), group_digits(io::provenance_number(results, "space_bounds")),
                        results.experiments.rows());
  const double gap = io::provenance_number(results, "best_gap");
  const char* proven = count_of("pending") > 0  ? "not found yet"
                       : count_of("failed") > 0 ? "proven but for those that failed"
                                                : "proven";
  if (const auto front = io::proven_front(results)) return text + io::front_text(results, *front) + "\n";
  text += fmt::format("the best {} are {}: {} were simulated, and the lower bounds of {} others are behind them", best,
                      proven, count_of("ran"), count_of("bounded"));
  if (gap > 0)
    text += fmt::format("; something else may be better than the last of them by {:.2g} % at most", 100 * gap);
  return text + "\n";
}

std::string summary_text(const io::Results& results) {
  const auto number = [&](const char* name) { return io::provenance_number(results, name); };
  std::string text =
      fmt::format("{} {}:", results.experiments.rows(), core::plural(results.experiments.rows(), "experiment"));
  for (const auto& [status, count] : statuses(results)) text += fmt::format(" {} {},", count, status);
  text += fmt::format(" and {} combinations left out\n", results.excluded.rows());
  text += exclusions_text(results.excluded);
  text += fmt::format("sub-simulations: {} kernels for {} uses, {} collectives for {}, {} episodes for {}\n",
                      results.kernels.rows(), group_digits(number("kernel_uses")), results.collectives.rows(),
                      group_digits(number("collective_uses")), results.episodes.rows(),
                      group_digits(number("episode_uses")));
  const double transferred = number("link_hops_transferred"), simulated = number("link_hops_simulated");
  if (transferred < simulated)
    text += fmt::format("link-hops: {} simulated, including experiments beyond their limit\n", group_digits(simulated));
  else
    text += fmt::format(
        "link-hops: {} of {} simulated; {} are of equal steps, {} of equal collectives, {} of whole periods, the rest "
        "of equal episodes, clusters and ranks, mostly of one experiment\n",
        group_digits(simulated), group_digits(transferred), group_digits(number("link_hops_skipped_steps")),
        group_digits(number("link_hops_skipped_collectives")), group_digits(number("link_hops_skipped_periods")));
  text += best_text(results);
  if (const std::string alone = io::one_by_one_text(results); !alone.empty()) text += alone + "\n";
  return text + fmt::format("tasks: {} computed, {} from the journal, {} from the store; {} elapsed, {:.1f} s of CPU\n",
                            group_digits(number("tasks_computed")), group_digits(number("tasks_from_journal")),
                            group_digits(number("tasks_from_store")), duration_text(number("elapsed_s")),
                            number("cpu_s"));
}

}  // namespace manyworlds::farm
