#include "farm/results/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "farm/results/answer_tables.hpp"
#include "farm/status/progress.hpp"
#include "io/results/figures.hpp"

namespace manyworlds::farm {
namespace {

using io::grouped;
using Json = nlohmann::ordered_json;

std::map<std::string, std::size_t> statuses(const io::Results& results) {
  const io::Column* status = results.experiments.find("status");
  MANYWORLDS_CHECK(status && status->is_text(), "results without a status");
  return results.experiments.counts_of("status");
}

constexpr std::size_t kMostRules = 3;

/// The rules that left most out, each with the first combination it left out; a few words of it may mend the sweep.
std::string left_out_text(const io::Table& excluded) {
  const io::Column *rule = excluded.find("rule"), *reason = excluded.find("reason");
  if (rule == nullptr || reason == nullptr) return "";
  std::map<std::string, std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < excluded.rows(); ++row) rows_of[rule->text_at(row)].push_back(row);
  std::vector<std::pair<std::string, std::vector<std::size_t>>> rules(rows_of.begin(), rows_of.end());
  std::stable_sort(rules.begin(), rules.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (std::size_t i = 0; i < std::min(rules.size(), kMostRules); ++i)
    text += fmt::format("  {} by {}: {}\n", rules[i].second.size(), rules[i].first,
                        reason->text_at(rules[i].second.front()));
  if (rules.size() > kMostRules)
    text += fmt::format("  and {} more rules (--dry-run tells all)\n", rules.size() - kMostRules);
  return text;
}

}  // namespace

Json summary_json(const io::Results& results) {
  Json made;
  made["experiments"] = results.experiments.rows();
  for (const char* status : {"ran", "out_of_memory", "too_large", "failed", "pending"}) {
    const auto counted = statuses(results);
    const auto found = counted.find(status);
    made[status] = found == counted.end() ? 0 : found->second;
  }
  made["excluded"] = results.excluded.rows();
  made["subsimulations"] = {{"kernels", results.kernels.rows()},
                            {"collectives", results.collectives.rows()},
                            {"episodes", results.episodes.rows()}};
  for (const io::Attribute& attribute : results.provenance)
    std::visit([&](const auto& value) { made["provenance"][attribute.name] = value; }, attribute.value);
  return made;
}

std::string summary_text(const io::Results& results) {
  const auto number = [&](const char* name) { return io::provenance_number(results, name); };
  std::string text = fmt::format("{} experiments:", results.experiments.rows());
  for (const auto& [status, count] : statuses(results)) text += fmt::format(" {} {},", count, status);
  text += fmt::format(" and {} combinations left out\n", results.excluded.rows());
  text += left_out_text(results.excluded);
  text += fmt::format("sub-simulations: {} kernels for {} uses, {} collectives for {}, {} episodes for {}\n",
                      results.kernels.rows(), grouped(number("kernel_uses")), results.collectives.rows(),
                      grouped(number("collective_uses")), results.episodes.rows(), grouped(number("episode_uses")));
  const double transferred = number("link_hops_transferred"), simulated = number("link_hops_simulated");
  if (transferred < simulated)
    text += fmt::format("packet hops: {} simulated, those of worlds beyond their limit included\n", grouped(simulated));
  else
    text += fmt::format("packet hops: {} of {} simulated; the rest reused\n", grouped(simulated), grouped(transferred));
  return text + fmt::format("tasks: {} computed, {} from the journal, {} from the store; {} elapsed, {:.1f} s of CPU\n",
                            grouped(number("tasks_computed")), grouped(number("tasks_from_journal")),
                            grouped(number("tasks_from_store")), duration_text(number("elapsed_s")), number("cpu_s"));
}

}  // namespace manyworlds::farm
