#include "farm/plan/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kEven = 1.05;  // a shard that costs this much of an even share costs no more than it should

/// Steps that stay together: all of them ask for the same collectives.
struct Piece {
  std::vector<std::uint32_t> steps;
  double cost = 0;  // of the steps alone
  double cost_with_collectives = 0;
};

double cost_of(const Plan& plan, const std::vector<std::uint32_t>& collectives) {
  double cost = 0;
  for (const std::uint32_t one : collectives) cost += plan.collectives[one].cost;
  return cost;
}

/// No piece of several steps costs more than `most`. The dearest come first.
std::vector<Piece> pieces_of(const Plan& plan, double most) {
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> alike;
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) alike[plan.steps[step].collectives].push_back(step);
  std::vector<Piece> pieces;
  for (const auto& [collectives, steps] : alike) {
    const double shared = cost_of(plan, collectives);
    bool begin = true;
    for (const std::uint32_t step : steps) {
      const double cost = plan.steps[step].cost;
      if (begin || (pieces.back().cost > 0 && pieces.back().cost_with_collectives + cost > most))
        pieces.push_back({{}, 0, shared});
      begin = false;
      pieces.back().steps.push_back(step);
      pieces.back().cost += cost;
      pieces.back().cost_with_collectives += cost;
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.cost_with_collectives > b.cost_with_collectives; });
  return pieces;
}

struct Deal {
  std::vector<std::uint32_t> shard_of_step;
  double most = 0;  // what the dearest shard costs
};

/// Each piece to the shard that is then the cheapest; collectives that it has already cost nothing more.
Deal dealt(const Plan& plan, const std::vector<Piece>& pieces, std::uint32_t count) {
  Deal deal{std::vector<std::uint32_t>(plan.steps.size()), 0};
  std::vector<double> load(count, 0);
  std::vector<std::vector<bool>> has(count, std::vector<bool>(plan.collectives.size()));
  for (const Piece& piece : pieces) {
    const auto& collectives = plan.steps[piece.steps.front()].collectives;
    std::uint32_t best = 0;
    double best_load = 0;
    for (std::uint32_t shard = 0; shard < count; ++shard) {
      double with = load[shard] + piece.cost;
      for (const std::uint32_t one : collectives)
        if (!has[shard][one]) with += plan.collectives[one].cost;
      if (shard == 0 || with < best_load) best = shard, best_load = with;
    }
    load[best] = best_load;
    for (const std::uint32_t one : collectives) has[best][one] = true;
    for (const std::uint32_t step : piece.steps) deal.shard_of_step[step] = best;
  }
  deal.most = *std::max_element(load.begin(), load.end());
  return deal;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const auto refuse = [&](const std::string& what) {
    throw core::InputError(
        fmt::format("--shard {}: {}; it takes I/N with I from 1 to N, as in --shard 3/8", text, what));
  };
  Shard shard;
  const auto read = [&](const char* from, const char* end, std::uint32_t& into) {
    const auto [last, error] = std::from_chars(from, end, into);
    if (error != std::errc() || last != end) refuse("not two numbers");
  };
  const auto slash = text.find('/');
  if (slash == std::string::npos) refuse("not two numbers");
  read(text.data(), text.data() + slash, shard.number);
  read(text.data() + slash + 1, text.data() + text.size(), shard.count);
  if (shard.count < 1 || shard.count > kMostShards) refuse(fmt::format("N is from 1 to {}", kMostShards));
  if (shard.number < 1 || shard.number > shard.count) refuse(fmt::format("there is no shard {}", shard.number));
  return shard;
}

std::string shard_directory(const std::string& run_directory, const Shard& shard) {
  if (shard.whole()) return run_directory;
  return fmt::format("{}.shards/{}-of-{}", run_directory, shard.number, shard.count);
}

double cost_of(const Plan& plan) {
  double cost = 0;
  for (const PlannedCollective& collective : plan.collectives) cost += collective.cost;
  for (const PlannedStep& step : plan.steps) cost += step.cost;
  return cost;
}

std::vector<std::uint32_t> shards_of_steps(const Plan& plan, std::uint32_t count) {
  MANYWORLDS_CHECK(count > 0, "{} shards", count);
  if (count == 1) return std::vector<std::uint32_t>(plan.steps.size(), 0);
  const double even = cost_of(plan) / count;
  Deal best;
  for (const double parts : {1, 2, 4, 8, 16}) {
    Deal deal = dealt(plan, pieces_of(plan, even / parts), count);
    if (best.shard_of_step.empty() || deal.most < best.most) best = std::move(deal);
    if (best.most <= kEven * even) break;
  }
  return best.shard_of_step;
}

Plan part_of(Plan whole, const Shard& shard) {
  if (shard.whole()) return whole;
  const std::uint32_t mine = shard.number - 1;
  const std::vector<std::uint32_t> shard_of = shards_of_steps(whole, shard.count);
  std::vector<bool> asked(whole.collectives.size());
  for (std::uint32_t step = 0; step < whole.steps.size(); ++step)
    if (shard_of[step] == mine)
      for (const std::uint32_t one : whole.steps[step].collectives) asked[one] = true;
  Plan part;
  std::vector<std::uint32_t> new_collective(whole.collectives.size());
  for (std::uint32_t one = 0; one < whole.collectives.size(); ++one) {
    new_collective[one] = static_cast<std::uint32_t>(part.collectives.size());
    if (asked[one]) part.collectives.push_back(whole.collectives[one]);
  }
  std::vector<std::uint32_t> new_step(whole.steps.size(), kNoStep);
  for (std::uint32_t step = 0; step < whole.steps.size(); ++step) {
    if (shard_of[step] != mine) continue;
    new_step[step] = static_cast<std::uint32_t>(part.steps.size());
    part.steps.push_back(std::move(whole.steps[step]));
    for (std::uint32_t& one : part.steps.back().collectives) one = new_collective[one];
  }
  part.experiments = std::move(whole.experiments);
  std::uint32_t out_of_memory = 0;
  for (PlannedExperiment& experiment : part.experiments) {
    if (experiment.fits())
      experiment.step = new_step[experiment.step], experiment.elsewhere = experiment.step == kNoStep;
    else
      experiment.elsewhere = out_of_memory++ % shard.count != mine;
  }
  return part;
}

}  // namespace manyworlds::farm
