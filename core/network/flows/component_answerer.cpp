#include "core/network/flows/component_answerer.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/flows/component_messages.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {

namespace {
constexpr std::size_t kMaxEngines = 4;
}

std::string ComponentAnswerer::answer(const std::string& bytes) {
  ComponentQuestion question = decode_question(bytes);
  const FastForwardOptions options{question.periods, question.transport.rate_tolerance_ppm};
  auto known = std::find_if(engines_.begin(), engines_.end(),
                            [&](const KnownEngine& one) { return one.transport == question.transport; });
  if (known == engines_.end()) {
    if (engines_.size() == kMaxEngines) engines_.erase(engines_.begin());
    std::unique_ptr<Engine> engine = make_engine(question.transport);
    known = engines_.insert(engines_.end(), {std::move(question.transport), std::move(engine)});
  } else {
    known->engine->reset();
  }
  std::rotate(known, known + 1, engines_.end());
  ComponentState begin;
  begin.words = std::move(question.words);
  const std::shared_ptr<const State> state = make_state(std::move(begin));
  MANYWORLDS_CHECK(state->words.size() > 1, "a component of {} words", state->words.size());
  return encode(ComponentAnswer{state->digest, simulate_component(*engines_.back().engine, options, *state, kNever)});
}

}  // namespace manyworlds::core::network
