// Loads of experts: whole tokens from weights, Zipf's law, capacity, copies of hot experts.
#include "core/workload/distributions/expert_routing.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "core/workload/parts/expert_load.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core::workload;

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// 16 experts, of which a token visits 4; 1,024 tokens on a rank.
Model sixteen_experts() {
  Model model = llama(6, 512, 8, 4, 1'024, 3'000);
  model.sequence = 1'024;
  model.experts = 16;
  model.experts_per_token = 4;
  model.expert_ffn_hidden = 256;
  model.dense_layers = 2;
  return model;
}

Strategy eight_ranks() {
  Strategy strategy = layout(1, 1, 1, 8);
  strategy.dp = 8;
  strategy.ep = 8;
  return strategy;
}

/// Of one rank, by a loop over the experts: what FasterMoE's code says, line by line.
std::vector<std::int64_t> shadow_policy(std::vector<std::pair<double, std::int64_t>> loads, double comp, double feature,
                                        double weights) {
  std::sort(loads.begin(), loads.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  double base = 3 * comp * loads[0].first + 4 * feature * loads[0].first, shadow = 0;
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i + 1 < loads.size(); ++i) {
    shadow += weights;
    const double now = 3 * comp * loads[i + 1].first + 4 * feature * loads[i + 1].first + shadow;
    if (now >= base) break;
    base = now;
    chosen.push_back(loads[i].second);
  }
  return chosen;
}

}  // namespace

TEST_CASE("tokens by weight are whole, add up, and are within one of their share where none is full") {
  std::mt19937_64 random(1);
  for (int draw = 0; draw < 500; ++draw) {
    std::vector<std::int64_t> weights;
    const std::size_t experts = 2 + random() % 60;
    for (std::size_t e = 0; e < experts; ++e) weights.push_back(1'000 + static_cast<std::int64_t>(random() % 500));
    const auto tokens = static_cast<std::int64_t>(1 + random() % 5'000);
    const auto top_k = static_cast<std::int64_t>(1 + random() % (experts / 2));
    const std::vector<std::int64_t> given = tokens_by_weight(weights, tokens * top_k, tokens);
    REQUIRE(sum_of(given) == tokens * top_k);
    for (std::size_t e = 0; e < experts; ++e) {
      const double share =
          static_cast<double>(weights[e]) * static_cast<double>(tokens * top_k) / static_cast<double>(sum_of(weights));
      if (share < static_cast<double>(tokens)) REQUIRE(std::abs(static_cast<double>(given[e]) - share) < 1 + 1e-9);
      REQUIRE(given[e] <= tokens);
    }
  }
}

TEST_CASE("an expert is sent no token twice: what it cannot take goes to the others in proportion") {
  // 100 tokens to 2 experts each: the first would get 160 of 200.
  CHECK(tokens_by_weight(std::vector<std::int64_t>{80, 10, 6, 4}, 200, 100) ==
        std::vector<std::int64_t>{100, 50, 30, 20});
  // Then the second would get 120 of 150.
  CHECK(tokens_by_weight(std::vector<std::int64_t>{1'000, 80, 15, 5}, 250, 100) ==
        std::vector<std::int64_t>{100, 100, 38, 12});  // 37.5 and 12.5: of equal remainders the first is rounded up
  CHECK(tokens_by_weight(std::vector<std::int64_t>{7, 0, 9}, 20, 10) == std::vector<std::int64_t>{10, 0, 10});
}

TEST_CASE("Zipf's weights are powers, and a layer's order is its own") {
  for (const double exponent : {0.0, 0.3, 1.0, 1.2, 2.5}) {
    const std::vector<std::int64_t> weights = zipf_weights(256, exponent);
    for (std::size_t r = 1; r <= weights.size(); ++r)
      REQUIRE(static_cast<double>(weights[r - 1]) ==
              Approx(std::pow(2.0, 40) * std::pow(static_cast<double>(r), -exponent)).epsilon(1e-12).margin(0.51));
  }
  CHECK(zipf_weights(8, 1) == std::vector<std::int64_t>{1'099'511'627'776, 549'755'813'888, 366'503'875'925,
                                                        274'877'906'944, 219'902'325'555, 183'251'937'963,
                                                        157'073'089'682, 137'438'953'472});
  const auto routing = zipf_routing(20, 64, 1.1, 7), again = zipf_routing(20, 64, 1.1, 7);
  CHECK(routing->loads == again->loads);
  CHECK(routing->key == again->key);
  CHECK(routing->key != zipf_routing(20, 64, 1.1, 8)->key);
  CHECK(routing->key != zipf_routing(20, 64, 1.2, 7)->key);
  CHECK(routing->key != zipf_routing(21, 64, 1.1, 7)->key);
  CHECK(std::set<std::vector<std::int64_t>>(routing->loads.begin(), routing->loads.end()).size() == 20);
  std::vector<int> hottest(64, 0);
  const auto many = zipf_routing(2'000, 64, 1, 3);
  for (std::vector<std::int64_t> load : many->loads) {
    ++hottest[static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin())];
    std::sort(load.begin(), load.end(), std::greater<>());
    REQUIRE(load == zipf_weights(64, 1));
  }
  for (const int times : hottest) CHECK(times > 10);  // 31 of 2,000 each
}

TEST_CASE("every row that a rank sends is computed by one, and no layer loses a token without capacity") {
  Model model = sixteen_experts();
  for (const double exponent : {0.0, 0.7, 1.5})
    for (const std::int64_t etp : {1, 2}) {
      model.routing = zipf_routing(model.layers, model.experts, exponent, 5);
      Strategy strategy = eight_ranks();
      strategy.etp = etp;
      strategy.tp = etp, strategy.sequence_parallel = etp > 1;
      const std::int64_t tokens = model.sequence / etp;
      for (std::int64_t layer = model.dense_layers; layer < model.layers; ++layer) {
        const ExpertLoad load = expert_load(model, strategy, model.layer_kind(layer));
        CHECK(load.routed == 4 * tokens);
        CHECK(sum_of(load.rows) == load.routed);
        CHECK(load.dropped == 0);
        std::int64_t computed = 0, received = 0;
        for (std::int64_t rank = 0; rank < 8; ++rank) {
          const RankLoad mine = rank_load(model, strategy, load, rank);
          CHECK(sum_of(mine.to_ranks.bytes) == mine.sent);
          CHECK(mine.experts.size() == 2);
          for (std::size_t e = 0; e < 2; ++e)
            CHECK(mine.experts[e] == 8 * etp * load.rows[static_cast<std::size_t>(2 * rank) + e]);
          computed += mine.computed, received += mine.received;
        }
        CHECK(received == 8 * load.routed);
        CHECK(computed == 8 * etp * load.routed);
      }
    }
}

TEST_CASE("capacity drops what is over it and pads what is under it, row by row") {
  Model model = sixteen_experts();
  for (const bool balanced : {true, false})
    for (const double factor : {0.5, 1.0, 1.25, 2.0, 100.0})
      for (const bool pad : {true, false}) {
        model.routing = balanced ? nullptr : zipf_routing(model.layers, model.experts, 1, 11);
        Strategy strategy = eight_ranks();
        strategy.capacity_factor = factor;
        strategy.pad_to_capacity = pad;
        CAPTURE(balanced, factor, pad);
        const std::int64_t tokens = model.sequence, routed = 4 * tokens;
        // ceil(factor x 4,096 / 16), and no more than all tokens.
        const auto capacity = std::min(tokens, static_cast<std::int64_t>(std::ceil(factor * 256)));
        CHECK(expert_capacity(model, strategy, tokens) == capacity);
        for (std::int64_t layer = model.dense_layers; layer < model.layers; ++layer) {
          const LayerKind kind = model.layer_kind(layer);
          const std::vector<std::int64_t> chosen =
              balanced ? std::vector<std::int64_t>(16, 256)
                       : tokens_by_weight(model.routing->loads[kind.load], routed, tokens);
          std::int64_t dropped = 0, padded = 0;
          for (const std::int64_t rows : chosen) {
            dropped += std::max<std::int64_t>(0, rows - capacity);
            padded += pad ? std::max<std::int64_t>(0, capacity - rows) : 0;
          }
          const ExpertLoad load = expert_load(model, strategy, kind);
          CHECK(load.dropped == dropped);
          CHECK(load.padded == padded);
          const std::int64_t kept = load.all_rows() - load.padded;
          CHECK(kept + load.dropped == routed);
          if (pad) CHECK(load.all_rows() == 16 * capacity);
          CHECK(load.rows.empty() == (pad || balanced));
          if (!load.rows.empty()) CHECK(sum_of(load.rows) == load.all_rows());
        }
        CHECK(expert_ranks_differ(model, strategy) == !(pad || balanced));
        CHECK((routing_summary(model, strategy).drop_rate > 0) == (factor < 1 || (!balanced && factor < 4)));
      }
}

TEST_CASE("copies of hot experts are those of FasterMoE's policy, to its figures") {
  // shadow_policy.py with its defaults: hidden 2,048, twice as wide inside, fp32, 50 Gb/s, 11.5 TFLOP/s.
  const double hidden = 2'048, rate = 11.5e12, bytes_per_s = 50e9 / 8;
  const CopyCosts costs{4 * 2 * hidden * hidden / rate, hidden * 4 / bytes_per_s,
                        2 * 2 * hidden * hidden * 4 / bytes_per_s};
  CHECK(experts_to_copy(std::vector<std::int64_t>(16, 4'096), costs, 0).empty());
  std::vector<std::int64_t> hot(16, 2'184);
  hot[9] = 32'768;
  CHECK(experts_to_copy(hot, costs, 0) == std::vector<std::int64_t>{9});
  const auto takes_ms = [&](double tokens, double copies) {
    return 1e3 * ((3 * costs.forward_s + 4 * costs.send_s) * tokens + copies * costs.copy_s);
  };
  CHECK(takes_ms(32'768, 0) == Approx(458.628).epsilon(1e-6));
  CHECK(takes_ms(2'184, 1) == Approx(41.305).epsilon(2e-5));
  // mean 4,095.5 and standard deviation 7,403.2: a spread of 1.808
  CHECK(experts_to_copy(hot, costs, 1.80).size() == 1);
  CHECK(experts_to_copy(hot, costs, 1.81).empty());
  std::mt19937_64 random(2);
  std::size_t copied = 0;
  for (int draw = 0; draw < 300; ++draw) {
    std::vector<std::int64_t> loads;
    std::vector<std::pair<double, std::int64_t>> named;
    for (std::int64_t e = 0; e < 24; ++e) {
      loads.push_back(static_cast<std::int64_t>(random() % 20'000 * (random() % 3)));
      named.emplace_back(static_cast<double>(loads.back()), e);
    }
    const auto expected = shadow_policy(named, costs.forward_s, costs.send_s, costs.copy_s);
    REQUIRE(experts_to_copy(loads, costs, 0) == expected);
    copied += expected.size();
  }
  CHECK(copied > 300);
}

TEST_CASE("tokens of a copied expert stay where they are, and all others travel as before") {
  Model model = sixteen_experts();
  model.routing = zipf_routing(model.layers, model.experts, 1.4, 2);
  Strategy strategy = eight_ranks();
  const Strategy without = strategy;
  strategy.hot_experts = true;
  strategy.hot_expert_tflops = 1, strategy.hot_expert_gbps = 10;
  // An expert: 3 x 512 x 256 weights; 2 FLOPs each for a token's forward pass, 2 B each on their way.
  const CopyCosts costs = copy_costs(model, strategy);
  CHECK(costs.forward_s == Approx(2 * 393'216 / 1e12));
  CHECK(costs.send_s == Approx(2 * 512 / 1.25e9));
  CHECK(costs.copy_s == Approx(2 * 393'216 / 1.25e9));
  std::size_t copies = 0;
  for (std::int64_t layer = model.dense_layers; layer < model.layers; ++layer) {
    const LayerKind kind = model.layer_kind(layer);
    const ExpertLoad load = expert_load(model, strategy, kind), plain = expert_load(model, without, kind);
    CHECK(load.rows == plain.rows);
    copies += load.copied.size();
    std::int64_t computed = 0;
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const RankLoad mine = rank_load(model, strategy, load, rank), before = rank_load(model, without, plain, rank);
      std::int64_t at_home = 0, local = 0;
      for (const std::int64_t expert : load.copied) {
        local += load.rows[static_cast<std::size_t>(expert)];
        if (expert / 2 == rank) at_home += load.rows[static_cast<std::size_t>(expert)];
      }
      CHECK(mine.sent == before.sent - local);
      CHECK(mine.received == before.received - 8 * at_home);
      CHECK(mine.computed == before.computed - 8 * at_home + local);
      CHECK(mine.experts.size() == 2 + load.copied.size());
      computed += mine.computed;
    }
    CHECK(computed == 8 * load.routed);
  }
  CHECK(copies > 0);
  CHECK(routing_summary(model, strategy).copies == static_cast<std::int64_t>(copies));
  CHECK(routing_summary(model, strategy).imbalance < routing_summary(model, without).imbalance);
  model.routing = nullptr;
  CHECK(expert_load(model, strategy, model.layer_kind(3)).copied.empty());  // nothing is hot
}
