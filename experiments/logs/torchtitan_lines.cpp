// Lines of torchtitan, whose metrics are per GPU and whose memory is what the allocator had reserved at most:
//   step: 20  loss:  8.3854  memory: 49.59GiB(35.46%)  tps: 7,080  tflops: …  mfu: 41.46%
//   Training starts at step 1, with local batch size 1, global batch size 8, sequence length 8192, …
#include "experiments/logs/line_numbers.hpp"
#include "experiments/logs/log_formats.hpp"

namespace manyworlds::experiments::logs {
namespace {

constexpr double kGib = 1 << 30;
constexpr std::int64_t kMaxGpus = 1 << 20;

/// Returns the product of the last list of integers on the line: ['dp_shard', 'tp'], [4, 2]. 0 if there is none.
std::int64_t product_of_list(std::string_view line) {
  const std::size_t begin = line.rfind('['), end = line.rfind(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return 0;
  std::int64_t product = 1;
  std::string_view rest = line.substr(begin + 1, end - begin - 1);
  for (;;) {
    const std::size_t comma = rest.find(',');
    const auto factor = number_at(rest.substr(0, comma));
    if (!factor || *factor < 1 || *factor > static_cast<double>(kMaxGpus)) return 0;
    product *= static_cast<std::int64_t>(*factor);
    if (product > kMaxGpus) return 0;
    if (comma == std::string_view::npos) return product;
    rest.remove_prefix(comma + 1);
  }
}

void read_start(std::string_view line, LogBuilder& to) {
  to.training_starts();
  if (const auto batch = integer_after(line, "global batch size"); batch && *batch > 0) to.log.global_batch = *batch;
  if (const auto length = integer_after(line, "sequence length"); length && *length > 0) to.log.sequence = *length;
}

}  // namespace

void read_torchtitan_line(std::string_view line, LogBuilder& to) {
  const std::size_t at = line.find("step:");
  if (at != std::string_view::npos && line.find("loss:", at) != std::string_view::npos) {
    auto rate = number_after(line, " tps:");
    if (!rate) rate = number_after(line, " wps:");  // its name in 2024
    const bool has_rate = line.find("tps:") != std::string_view::npos || line.find("wps:") != std::string_view::npos;
    if (!has_rate) return;
    to.step(integer_after(line, "step:"), rate);
    if (const auto memory = number_after(line, "memory:")) to.peak(kAnyRank, std::nullopt, *memory * kGib);
    return;
  }
  if (line.find("Training starts at step") != std::string_view::npos) return read_start(line, to);
  constexpr std::string_view kDevice = "CUDA capacity: ";
  if (const std::size_t device = line.find(kDevice); device != std::string_view::npos) {
    const std::size_t end = line.find(" with ", device);
    if (end != std::string_view::npos)
      to.log.device = line.substr(device + kDevice.size(), end - device - kDevice.size());
    return;
  }
  if (line.find("device mesh with [") != std::string_view::npos)
    if (const std::int64_t gpus = product_of_list(line); gpus > 0) to.log.gpus = gpus;
}

}  // namespace manyworlds::experiments::logs
