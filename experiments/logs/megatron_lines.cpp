// Lines of Megatron-LM's training loop, which Megatron-DeepSpeed, GPT-NeoX and Primus have too:
//   iteration  20/ 200 | consumed samples: 320 | elapsed time per iteration (ms): 388.3 | global batch size: 16 | …
//   [Rank 0] (after 20 iterations) memory (MB) | allocated: … | max allocated: … | reserved: … | max reserved: …
#include "experiments/logs/line_numbers.hpp"
#include "experiments/logs/log_formats.hpp"

namespace manyworlds::experiments::logs {
namespace {

constexpr double kMib = 1 << 20;  // what Megatron-LM prints as MB

std::optional<double> bytes_after(std::string_view line, std::string_view key) {
  const auto value = number_after(line, key);
  return value ? std::optional(*value * kMib) : std::nullopt;
}

/// Reads the memory of every rank on the line: ranks that print at once share one.
void read_memory(std::string_view line, LogBuilder& to) {
  constexpr std::string_view kRank = "[Rank ";
  for (std::size_t at = line.find(kRank); at != std::string_view::npos;) {
    const std::size_t next = line.find(kRank, at + 1);
    const std::string_view part = line.substr(at, next == std::string_view::npos ? next : next - at);
    const auto allocated = bytes_after(part, "max allocated:"), reserved = bytes_after(part, "max reserved:");
    if (const auto rank = integer_after(part, kRank); rank && (allocated || reserved))
      to.peak(*rank, allocated, reserved);
    at = next;
  }
}

/// Returns whether the line belongs to the dump of arguments.
bool read_arguments(std::string_view line, LogBuilder& to) {
  const bool begins = line.find("- arguments -") != std::string_view::npos;
  if (!begins && !to.in_arguments()) return false;
  if (begins) to.begin_arguments();
  to.argument_line(line);
  if (line.find("- end of arguments -") != std::string_view::npos) to.end_arguments();
  return true;
}

}  // namespace

void read_megatron_line(std::string_view line, LogBuilder& to) {
  constexpr std::string_view kTime = "elapsed time per iteration (ms):";
  if (const std::size_t at = line.find(kTime); at != std::string_view::npos) {
    const std::size_t word = line.rfind("iteration ", at - std::min<std::size_t>(at, 1));
    const auto time_ms = number_at(line.substr(at + kTime.size()));
    to.step(word == std::string_view::npos ? std::nullopt : integer_after(line.substr(word), "iteration "),
            time_ms ? std::optional(*time_ms / 1000) : std::nullopt,
            integer_after(line, "global batch size:").value_or(0));
    return;
  }
  if (read_arguments(line, to)) return;
  if (line.find(" memory (MB)") != std::string_view::npos) return read_memory(line, to);
  if (const auto gpus = integer_after(line, "using world size:"); gpus && *gpus > 0) to.log.gpus = *gpus;
  if (line.find("[before the start of training step]") != std::string_view::npos) to.training_starts();
  if (line.find("successfully saved checkpoint") != std::string_view::npos) ++to.log.checkpoints;
  if (line.find("validation loss at iteration") != std::string_view::npos) ++to.log.evaluations;
}

}  // namespace manyworlds::experiments::logs
