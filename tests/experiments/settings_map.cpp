// Settings that share a block beside a plain map, and sweeps whose points share theirs.
#include "experiments/keys/settings_map.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>

#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::testing;
using experiments::Settings;

namespace {

using Oracle = std::map<std::string, core::OptionValue>;

void check_same(const Settings& settings, const Oracle& oracle) {
  REQUIRE(settings.size() == oracle.size());
  REQUIRE(settings.empty() == oracle.empty());
  auto at = settings.begin();
  for (const auto& [key, value] : oracle) {
    REQUIRE(at->first == key);
    REQUIRE(at->second == value);
    REQUIRE(*settings.value(key) == value);
    REQUIRE(settings.find(key) == at);
    REQUIRE(settings.lower_bound(key) == at);
    ++at;
  }
  REQUIRE(at == settings.end());
}

/// Draws keys below two paths, and few values, so that changes meet.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }
  std::string key() { return (below(2) == 0 ? "a." : "b.") + std::string(1, static_cast<char>('k' + below(12))); }
  core::OptionValue value() { return static_cast<std::int64_t>(below(3)); }

  void change(Settings& settings, Oracle& oracle) {
    const std::string one = key();
    const core::OptionValue to = value();
    switch (below(5)) {
      case 0:
        settings.set(one, to);
        oracle[one] = to;
        break;
      case 1:
        settings[one] = to;
        oracle[one] = to;
        break;
      case 2:
        REQUIRE(settings.add(one, to) == oracle.emplace(one, to).second);
        break;
      case 3:
        REQUIRE(settings.erase(one) == oracle.erase(one));
        break;
      default:
        settings.erase_if([&](const auto& setting) { return setting.first.back() == one.back(); });
        std::erase_if(oracle, [&](const auto& setting) { return setting.first.back() == one.back(); });
    }
  }

 private:
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("settings that share a block are those of a plain map") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    Settings first, second;
    Oracle of_first, of_second;
    for (int i = 0; i < 20; ++i) draw.change(first, of_first);
    for (int i = 0; i < 20; ++i) draw.change(second, of_second);
    first.share();
    check_same(first, of_first);
    second.share_with(first);
    check_same(second, of_second);
    for (int i = 0; i < 20; ++i) {
      draw.change(first, of_first);
      draw.change(second, of_second);
      check_same(first, of_first);
      check_same(second, of_second);
      const auto below_a = [](const Oracle& all) { return Oracle(all.begin(), all.lower_bound("b")); };
      if (first.same_below("a.", second)) REQUIRE(below_a(of_first) == below_a(of_second));
      REQUIRE((first == second) == (of_first == of_second));
    }
    first.copy_below("a.", second);
    REQUIRE(first.same_below("a.", second));
    std::erase_if(of_first, [](const auto& setting) { return setting.first.starts_with("a."); });
    for (const auto& [key, value] : of_second)
      if (key.starts_with("a.")) of_first[key] = value;
    check_same(first, of_first);
  }
}

TEST_CASE("a setting that is as in the block is not held again") {
  Settings block{{"a", std::int64_t{1}}, {"b", std::int64_t{2}}};
  block.share();
  Settings one = block;
  one.set("b", std::int64_t{3});
  CHECK(one.unshared() == 1);
  one.set("b", std::int64_t{2});
  CHECK(one.unshared() == 0);
  CHECK(one == block);
  CHECK_THROWS_AS(one.at("c"), std::out_of_range);
}

TEST_CASE("each point of a sweep is what it is alone, and holds no more than what it has otherwise") {
  const std::string base =
      "base:\n  model: {layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}\n"
      "  cluster: {gpu: h100, nodes: 4, gpus_per_node: 4, nic_gbps: 200}\n"
      "  strategy: {global_batch: 64}\n";
  const std::string axes =
      "axes:\n  strategy.tp: [1, 2, 4]\n  strategy.zero: [0, 1, 3]\n  strategy.pp: [1, 2]\n"
      "  cluster.gpu: [h100, h200]\n  topology: [rail_optimized, {fat_tree: {leaf_hosts: 8, oversubscription: 2}}]\n";
  const experiments::Catalog catalog;
  const experiments::Sweep sweep = experiments::parse_sweep(base + axes, "s.yaml", {}, catalog);
  REQUIRE(sweep.experiments.size() > 40);
  std::size_t held = 0, all = 0;
  for (const experiments::Experiment& one : sweep.experiments) {
    std::vector<std::string> set;
    for (const char* key : {"strategy.tp", "strategy.zero", "strategy.pp"})
      set.push_back(fmt::format("{}={}", key, integer(one, key)));
    set.push_back("cluster.gpu=" + text(one, "cluster.gpu.name"));
    set.push_back(text(one, "topology") == "fat_tree" ? "topology={fat_tree: {leaf_hosts: 8, oversubscription: 2}}"
                                                      : "topology=rail_optimized");
    const experiments::Sweep alone = experiments::parse_sweep(base, "s.yaml", set, catalog);
    CAPTURE(set);
    CHECK(alone.experiments.at(0).settings == one.settings);
    if (text(one, "cluster.gpu.name") == "h100_sxm") held += one.settings.unshared(), all += one.settings.size();
  }
  CHECK(held * 20 < all);  // the first point's GPU: three sizes, a fabric, and the switches that follow from them
}

TEST_CASE("configurations that are read one after the other are those that are read alone") {
  const experiments::Sweep sweep = experiments::parse_sweep(
      "base:\n  model: {like: mixtral-8x7b, layers: 4}\n"
      "  cluster: {gpu: h100, nodes: 4, gpus_per_node: 8, nic_gbps: 400, pipeline_host_us: 3}\n"
      "  strategy: {global_batch: 64}\n"
      "axes:\n  cluster.gpu: [h100, h200]\n  strategy.ep: [1, 4]\n  strategy.tp: [1, 2]\n  strategy.pp: [1, 2]\n"
      "  strategy.hot_experts: [false, true]\n  model.sequence: [2048, 4096]\n",
      "s.yaml", {}, experiments::Catalog());
  REQUIRE(sweep.experiments.size() > 30);
  experiments::ConfigReader reader;
  for (const experiments::Experiment& one : sweep.experiments) {
    const experiments::ExperimentConfig& read = reader.read(one.settings, one.inputs);
    const experiments::ExperimentConfig alone = one.config();
    const core::step::Configuration &mine = read.configuration, &theirs = alone.configuration;
    using namespace core::workload;
    CHECK(strategy_options().read(mine.strategy) == strategy_options().read(theirs.strategy));
    CHECK(stack_options().read(mine.strategy.stack) == stack_options().read(theirs.strategy.stack));
    CHECK(model_options().read(mine.model) == model_options().read(theirs.model));
    CHECK(core::compute::gpu_options().read(mine.gpu) == core::compute::gpu_options().read(theirs.gpu));
    CHECK(mine.strategy.dp == theirs.strategy.dp);
    CHECK(mine.collectives == theirs.collectives);
    CHECK(read.fabric_spec() == alone.fabric_spec());
  }
}

TEST_CASE("a sweep whose time is over has the points that were visited, in the order of the grid") {
  const std::string text =
      with(kSingle, "global_batch: 8", "global_batch: 64") +
      "axes: {strategy.micro_batch: [1, 2, 4, 8], collectives.channels: [1, 2, 3, 4, 5, 6, 7, 8]}\n";
  const experiments::Sweep whole = read(text);
  REQUIRE(whole.experiments.size() + whole.excluded.size() == 32);
  REQUIRE(whole.unvisited == 0);
  experiments::ReadOptions options;
  int looks = 0;
  options.is_over = [&] { return ++looks > 1; };  // the clock is looked at for every 16th point
  const experiments::Sweep part = read(text, {}, options);
  CHECK(part.unvisited == 16);
  REQUIRE(part.experiments.size() + part.excluded.size() == 16);
  auto at = whole.experiments.begin();
  for (const experiments::Experiment& one : part.experiments) {
    at = std::find_if(at, whole.experiments.end(), [&](const auto& other) { return other.axes == one.axes; });
    REQUIRE(at != whole.experiments.end());
    CHECK(at->settings == one.settings);
    ++at;
  }
  options.is_over = [] { return true; };
  const experiments::Sweep none = read(text, {}, options);
  CHECK(none.experiments.empty());
  CHECK(none.unvisited == 32);
  options.is_over = [] { return false; };
  CHECK(experiments::serialize(read(text, {}, options)) == experiments::serialize(whole));
}
