#include "experiments/sweep/positions.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "experiments/model_keys/carried.hpp"

namespace manyworlds::experiments {
namespace {

/// Returns the positions that the model says that it has; 0 if it does not.
std::int64_t positions_of(const Settings& settings) {
  for (const models::CarriedArgument& one : models::carried_in(settings.text(models::kCarriedKey))) {
    if (one.name != "max-position-embeddings" || one.values.empty()) continue;
    const std::string& text = one.values.front();
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    return error == std::errc() && end == text.data() + text.size() ? count : 0;
  }
  return 0;
}

/// Returns `text` with the tokens of a sample and the positions of the model, if it has these and fewer of them; empty
/// otherwise.
std::string text_beyond(const Settings& settings, const char* position, fmt::string_view text) {
  const core::OptionValue* found = settings.value("model.sequence");
  const auto* tokens = found == nullptr ? nullptr : std::get_if<std::int64_t>(found);
  const std::int64_t positions = positions_of(settings);
  const bool beyond = tokens != nullptr && positions > 0 && *tokens > positions;
  if (!beyond || settings.text("model.position") != position) return "";
  return fmt::format(fmt::runtime(text), *tokens, positions);
}

}  // namespace

std::string missing_positions(const Settings& settings, Scope scope) {
  if (scope == Scope::network) return "";
  return text_beyond(settings, "learned",
                     "samples of {} tokens need as many learned positions, and the model has {} "
                     "(max_position_embeddings)");
}

std::string further_positions_note(const Settings& settings) {
  return text_beyond(settings, "rotary",
                     "samples of {} tokens are beyond the {} positions that the model was made for "
                     "(max_position_embeddings)");
}

}  // namespace manyworlds::experiments
