#include "experiments/nsys/range_texts.hpp"

#include <array>
#include <cctype>

#include "experiments/profiler_events/event_kinds.hpp"

namespace manyworlds::experiments::nsys {
namespace {

constexpr std::array<std::string_view, 3> kStepWords{"step", "iteration", "iter"};

/// Returns the number of a step, as digits; empty if the text is another.
std::string_view digits_of_step(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  if (last == text.npos || last + 1 == text.size() || text.size() - last > 16) return {};
  const std::string_view digits = text.substr(last + 1);
  std::string word;
  for (const char c : text.substr(0, last + 1)) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  while (!word.empty() && std::string_view(" _#:=-").find(word.back()) != std::string_view::npos) word.pop_back();
  for (const std::string_view one : kStepWords)
    if (word == one) return digits;
  return {};
}

}  // namespace

RangeText range_text(std::string_view text) {
  RangeText result;
  if (text.starts_with("nccl")) {
    result.nccl = nccl_range(text);
    result.creates_communicator =
        text.starts_with("ncclCommInit") || text.starts_with("ncclCommSplit") || text.starts_with("ncclCommShrink");
  } else if (profiler::step_number(text) || text.starts_with("Optimizer.step") ||
             text.starts_with("autograd::engine::evaluate_function")) {
    result.span = text;
  } else if (const std::string_view digits = digits_of_step(text); !digits.empty()) {
    result.span = "ProfilerStep#" + std::string(digits);
  }
  return result;
}

}  // namespace manyworlds::experiments::nsys
