// An engine that is saved and loaded again and again against one that runs on: the same instants, completions, counters
// and saved words, whatever is asked of them and when, with every transport on pinned paths.
#include <catch2/catch.hpp>

#include <map>
#include <random>

#include "core/network/transports/registry.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

/// An engine and the names of what is in it: a flow's is its order when it started, a link's the order of adding.
class Named {
 public:
  explicit Named(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  void add_link(const LinkSpec& spec) {
    const std::uint32_t slot = engine_->add_link(spec);
    slot_of_link_.push_back(slot);
    name_link(slot, static_cast<std::uint32_t>(slot_of_link_.size() - 1));
  }
  void start(const Route& route, std::int64_t bytes, std::uint64_t name, std::uint64_t order) {
    Route slots;
    for (const std::uint32_t link : route) slots.push_back(slot_of_link_[link]);
    name_flow(engine_->start(slots, bytes, order), name);
  }
  std::vector<std::uint64_t> run(Time limit) {
    std::vector<std::uint32_t> slots;
    engine_->run(limit, slots);
    std::vector<std::uint64_t> names;
    for (const std::uint32_t slot : slots) names.push_back(names_[slot]), names_[slot] = kNobody;
    std::sort(names.begin(), names.end());
    return names;
  }
  struct Part {
    StateWords words;
    std::vector<std::uint64_t> flows;
    std::vector<std::uint32_t> links;
    bool operator==(const Part&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Part& part) {
      for (const std::uint64_t flow : part.flows) out << "flow " << flow << ' ';
      for (const std::uint32_t link : part.links) out << "link " << link << ' ';
      for (const std::uint64_t word : part.words) out << static_cast<std::int64_t>(word) << ' ';
      return out;
    }
  };
  std::vector<Part> save() {
    std::vector<Part> parts;
    for (const ComponentState& saved : engine_->save()) {
      Part& part = parts.emplace_back();
      part.words = saved.words;
      for (const std::uint32_t slot : saved.flows) part.flows.push_back(names_[slot]);
      for (const std::uint32_t slot : saved.links) part.links.push_back(link_names_[slot]);
    }
    return parts;
  }
  /// Adds what was saved of another, at now(). A link that is in it stays a link that nothing else shares.
  void load(const Part& part, std::uint64_t order_offset) {
    std::vector<std::uint64_t> orders;
    for (const std::uint64_t name : part.flows) orders.push_back(name + order_offset);
    std::vector<std::uint32_t> flows, links;
    engine_->load(part.words, orders, flows, links);
    for (std::size_t i = 0; i < flows.size(); ++i) name_flow(flows[i], part.flows[i]);
    for (std::size_t i = 0; i < links.size(); ++i)
      name_link(links[i], part.links[i]), slot_of_link_[part.links[i]] = links[i];
  }
  void rank(std::uint64_t offset) {
    for (std::uint32_t slot = 0; slot < names_.size(); ++slot)
      if (names_[slot] != kNobody) engine_->set_tie_order(slot, names_[slot] + offset);
  }
  void replace_by_clone() { engine_ = engine_->clone(); }
  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }

 private:
  static constexpr std::uint64_t kNobody = UINT64_MAX;
  void name_flow(std::uint32_t slot, std::uint64_t name) {
    if (slot >= names_.size()) names_.resize(slot + 1, kNobody);
    names_[slot] = name;
  }
  void name_link(std::uint32_t slot, std::uint32_t name) {
    if (slot >= link_names_.size()) link_names_.resize(slot + 1);
    link_names_[slot] = name;
  }
  std::unique_ptr<Engine> engine_;
  std::vector<std::uint64_t> names_;  // by slot
  std::vector<std::uint32_t> link_names_, slot_of_link_;
};

struct Seen {
  Counters counters;
  int saves = 0, loads = 0;
};

class Script {
 public:
  explicit Script(std::uint64_t seed) : random_(seed) {}

  void play(Seen& seen) {
    draw_transport();
    std::uint64_t started = 0;
    expected_ = std::make_unique<Named>(make_engine(transport_));
    resumed_ = std::make_unique<Named>(make_engine(transport_));
    for (const LinkSpec& link : links_) expected_->add_link(link), resumed_->add_link(link);
    const std::uint64_t flows = static_cast<std::uint64_t>(any(1, 16));
    for (int step = 0;; ++step) {
      REQUIRE(step < 100'000);
      while (started < flows && any(0, 2) > 0) {
        const Route route = draw_route();
        const std::int64_t bytes = any(0, 3) == 0 ? any(0, 5'000) : any(0, 80) * 4096 + any(0, 1) * any(0, 4000);
        const std::uint64_t name = names_[started];
        ++started;
        for (Named* engine : {expected_.get(), resumed_.get()}) engine->start(route, bytes, name, name + offset_);
      }
      const Time now = (*expected_)->now();
      const Time limit = started == flows && any(0, 9) == 0 ? kNever
                         : any(0, 1) == 0                   ? now + any(0, 3) * kPacket
                                                            : now + any(0, 4'000'000);
      const auto ended = expected_->run(limit);
      REQUIRE(resumed_->run(limit == kNever ? kNever : limit + shift_) == ended);
      if (!ended.empty() || limit != kNever) REQUIRE((*resumed_)->now() == (*expected_)->now() + shift_);
      REQUIRE((*resumed_)->drained() == (*expected_)->drained());
      if ((*expected_)->drained()) {
        REQUIRE((*resumed_)->last_activity() == (*expected_)->last_activity() + shift_);
        same_counters();
        if (started == flows) break;
      }
      if (ended.empty() && limit == kNever) {
        REQUIRE((*resumed_)->deadlock().size() == (*expected_)->deadlock().size());
        REQUIRE(!(*expected_)->deadlock().empty());
        break;
      }
      change(seen);
    }
    seen.counters += (*expected_)->counters();
  }

 private:
  /// Saves, renames, clones or adds something between two runs, or does nothing.
  void change(Seen& seen) {
    const auto what = any(0, 19);
    if (what < 3) {
      const auto saved = expected_->save();
      REQUIRE(resumed_->save() == saved);
      same_counters();
      ++seen.saves;
      if (what < 2 && !saved.empty()) reload(saved), ++seen.loads;
    } else if (what == 3) {
      offset_ += 1'000;
      expected_->rank(offset_), resumed_->rank(offset_);
    } else if (what == 4) {
      resumed_->replace_by_clone();
    } else if (what == 5 && any(0, 3) == 0) {
      const LinkSpec link = spec(kRate, any(0, 4) == 0 ? any(0, 83'199) : any(83'200, 600'000), false, false);
      links_.push_back(link);
      layer_.push_back(1);
      expected_->add_link(link), resumed_->add_link(link);
    }
  }

  /// Goes on from the saved parts in a fresh engine, loaded in any order at another time.
  void reload(std::vector<Named::Part> saved) {
    before_ += (*resumed_)->counters();
    auto fresh = std::make_unique<Named>(make_engine(transport_));
    for (const LinkSpec& link : links_) fresh->add_link(link);
    const Time at = any(0, 5'000'000);
    fresh->run(at);
    shift_ = at - (*expected_)->now();
    std::shuffle(saved.begin(), saved.end(), random_);
    for (const Named::Part& part : saved) fresh->load(part, offset_);
    resumed_ = std::move(fresh);
  }

  std::int64_t any(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }

  void same_counters() {
    const Counters resumed = before_ + (*resumed_)->counters(), expected = (*expected_)->counters();
    REQUIRE(resumed.link_hops == expected.link_hops);
    REQUIRE(resumed.ecn_marks == expected.ecn_marks);
    REQUIRE(resumed.pauses == expected.pauses);
  }

  void draw_transport() {
    std::vector<std::string> kinds;
    for (const TransportType& type : transports())
      if (type.make_engine != nullptr) kinds.push_back(type.name);
    transport_.kind = kinds[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(kinds.size()) - 1))];
    transport_.window_bytes = any(1, 40) * 4160 + any(0, 1) * any(0, 4159);
    transport_.pfc_xoff_bytes = any(0, 2) == 0 ? 400'000 : any(1, 16) * 4160 + any(0, 4159);
    transport_.pfc_xon_bytes = transport_.pfc_xoff_bytes / any(1, 3);
    transport_.ecn_kmin_bytes = any(0, 6) * 1000;
    transport_.ecn_kmax_bytes = transport_.ecn_kmin_bytes * any(1, 4) + 1;
    transport_.ack_bytes = any(0, 1) * 64;
    const std::int64_t layers = any(1, 5), width = any(1, 4);
    const bool equal = any(0, 1) == 0;
    const Time latency = any(1, 4) * 250'000;
    for (std::int64_t layer = 0; layer < layers; ++layer)
      for (std::int64_t i = 0; i < width; ++i) {
        LinkSpec link = spec(kRate / (any(0, 3) == 0 ? any(1, 4) : 1), equal ? latency : any(350'000, 2'000'000),
                             layer == 0 && any(0, 5) > 0, layer + 1 == layers);
        link.scale_up = any(0, 7) == 0;
        links_.push_back(link);
        layer_.push_back(layer);
      }
    for (std::uint64_t i = 0; i < 64; ++i) names_.push_back(i);
    std::shuffle(names_.begin(), names_.end(), random_);
  }

  /// Through the layers in order, one link of each, some left out.
  Route draw_route() {
    Route route;
    while (route.empty()) {
      std::map<std::int64_t, std::vector<std::uint32_t>> by_layer;
      for (std::uint32_t link = 0; link < links_.size(); ++link) by_layer[layer_[link]].push_back(link);
      for (const auto& [layer, links] : by_layer)
        if (any(0, 5) > 0)
          route.push_back(links[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(links.size()) - 1))]);
    }
    return route;
  }

  std::mt19937_64 random_;
  std::unique_ptr<Named> expected_, resumed_;
  Time shift_ = 0;            // clock of resumed_ minus that of expected_
  Counters before_;           // of the engines that resumed_ replaced
  std::uint64_t offset_ = 0;  // of tie orders from names
  Transport transport_;
  std::vector<LinkSpec> links_;
  std::vector<std::int64_t> layer_;
  std::vector<std::uint64_t> names_;
};

}  // namespace

TEST_CASE("saved and loaded engines go on as if nothing had happened on 4,000 drawn scripts") {
  Seen seen;
  for (std::uint64_t seed = 1; seed <= 4'000; ++seed) {
    INFO("seed " << seed);
    Script(seed).play(seen);
  }
  CHECK(seen.counters.ecn_marks > 1'000);  // the draws do reach marking, pausing, saving and loading
  CHECK(seen.counters.pauses > 1'000);
  CHECK(seen.saves > 1'000);
  CHECK(seen.loads > 1'000);
}
