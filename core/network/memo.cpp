#include "core/network/memo.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <xxhash.h>

namespace manyworlds::core::network {

std::shared_ptr<const State> make_state(Words words) {
  auto state = std::make_shared<State>();
  const XXH128_hash_t digest = XXH3_128bits(words.data(), words.size() * sizeof(words[0]));
  state->words = std::move(words);
  state->digest = {digest.low64, digest.high64};
  return state;
}

Memo::Memo(const Transport& transport, std::size_t byte_limit)
    : transport_(transport), engine_(make_engine(transport)), byte_limit_(byte_limit) {}

std::shared_ptr<const Outcome> Memo::outcome(const State& state, Time limit) {
  const Key key{state.digest, state.words.size(), limit};
  if (const auto found = outcomes_.find(key); found != outcomes_.end()) {
    ++hits_;
    return found->second;
  }
  ++misses_;
  auto made = compute(state, limit);
  simulated_ += made->counters;
  std::size_t bytes = sizeof(Outcome) + 128 + made->standstill.size() * sizeof(made->standstill[0]);
  for (const Outcome::Part& part : made->parts) bytes += part.state->words.size() * 8 + part.links.size() * 8 + 128;
  if (bytes_ + bytes > byte_limit_) outcomes_.clear(), bytes_ = 0;
  bytes_ += bytes;
  outcomes_.emplace(key, made);
  return made;
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
  std::vector<std::uint32_t> links;
  engine.load(state.words, orders, links);
  auto made = std::make_shared<Outcome>();
  engine.run(limit, made->completed);
  std::sort(made->completed.begin(), made->completed.end());
  made->elapsed = engine.now();
  made->counters = engine.counters();
  if (made->completed.empty() && limit == kNever) made->standstill = numbered(engine.standstill(), links);
  for (SavedPart& part : engine.save())
    made->parts.push_back({make_state(std::move(part.words)), std::move(part.flows), std::move(part.links)});
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
