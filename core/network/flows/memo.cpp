#include "core/network/flows/memo.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <xxhash.h>

#include "core/network/transports/registry.hpp"
#include "core/network/transports/sliced.hpp"

namespace manyworlds::core::network {

namespace {

std::array<std::uint64_t, 2> digest_of(const Words& words) {
  const XXH128_hash_t digest = XXH3_128bits(words.data(), words.size() * sizeof(words[0]));
  return {digest.low64, digest.high64};
}

Memo::Parts parts_of(Engine& engine) {
  Memo::Parts parts;
  for (SavedPart& part : engine.save())
    parts.push_back({make_state(std::move(part.words)), std::move(part.flows), std::move(part.links)});
  return parts;
}

}  // namespace

std::shared_ptr<const State> make_state(Words words) {
  auto state = std::make_shared<State>();
  state->digest = digest_of(words);
  state->words = std::move(words);
  return state;
}

Memo::Memo(const Transport& transport, std::size_t byte_limit, bool periods)
    : transport_(transport),
      skipping_{periods, transport.rate_tolerance_ppm},
      engine_(make_engine(transport)),
      byte_limit_(byte_limit) {}

std::unique_ptr<Engine> Memo::lend() {
  if (spare_.empty()) return make_running_engine(transport_);
  std::unique_ptr<Engine> engine = std::move(spare_.back());
  spare_.pop_back();
  engine->reset();
  return engine;
}

Memo::Found Memo::outcome(const State& state, Time limit) {
  const Key key{state.digest, state.words.size(), limit};
  if (const auto found = outcomes_.find(key); found != outcomes_.end()) {
    ++hits_;
    return {found->second, true};
  }
  ++misses_;
  auto made = compute(state, limit);
  make_room(made->parts, made->standstill.size());
  outcomes_.emplace(key, made);
  return {std::move(made), false};
}

void Memo::make_room(const Parts& parts, std::size_t waits) {
  std::size_t bytes = sizeof(Outcome) + 128 + waits * sizeof(PauseWaits::value_type);
  for (const Outcome::Part& part : parts) bytes += part.state->words.size() * 8 + part.links.size() * 8 + 128;
  if (bytes_ + bytes > byte_limit_) outcomes_.clear(), joins_.clear(), bytes_ = 0;
  bytes_ += bytes;
}

Memo::Joined Memo::join(const Words& words, const std::function<void(Engine&)>& load) {
  const Key key{digest_of(words), words.size(), 0};
  if (const auto found = joins_.find(key); found != joins_.end()) return {found->second, true};
  Engine& engine = scratch();
  load(engine);
  auto made = std::make_shared<const Parts>(parts_of(engine));
  make_room(*made, 0);
  joins_.emplace(key, made);
  return {std::move(made), false};
}

/// From slots of the engine to numbers of the state.
PauseWaits Memo::numbered(PauseWaits waits, const std::vector<std::uint32_t>& slots) {
  const auto number = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  };
  for (auto& [paused, holder] : waits) paused = number(paused), holder = number(holder);
  return waits;
}

std::shared_ptr<const Outcome> Memo::compute(const State& state, Time limit) {
  Engine& engine = scratch();
  std::vector<std::uint64_t> orders(state.words[1]);  // flow numbers are their ranks
  std::iota(orders.begin(), orders.end(), 0u);
  std::vector<std::uint32_t> flows, links;
  engine.load(state.words, orders, flows, links);
  auto made = std::make_shared<Outcome>();
  Stretch stretch(engine, std::move(flows), state.words.size(), skipping_);
  stretch.run(limit, made->completed);
  std::sort(made->completed.begin(), made->completed.end());
  made->elapsed = stretch.now();
  if (made->completed.empty() && limit == kNever) made->standstill = numbered(engine.standstill(), links);
  made->parts = parts_of(engine);
  made->counters = stretch.counters();
  link_hops_ += stretch.link_hops();
  return made;
}

std::shared_ptr<const State> Memo::fresh(const std::vector<LinkSpec>& path, std::int64_t bytes) {
  Engine& engine = scratch();
  Route route;
  for (const LinkSpec& spec : path) route.push_back(engine.add_link(spec));
  engine.start(route, bytes, 0);
  return make_state(std::move(engine.save().front().words));
}

}  // namespace manyworlds::core::network
