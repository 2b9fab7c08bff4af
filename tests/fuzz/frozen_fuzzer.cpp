// Any text as the serialized job of a run directory, under a checksum that fits: it is refused, or read as a job that
// is serialized to one that says the same.
#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "experiments/catalog/catalog.hpp"
#include "farm/plan/serialized_job.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

namespace {

constexpr std::string_view kBegin = "{\"check\":\"";
constexpr std::size_t kDigits = 16, kHead = kBegin.size() + kDigits + 2;

/// The checksum is of all bytes behind it and its comma.
std::string sealed(std::string text) {
  if (text.starts_with(kBegin) && text.size() >= kHead)
    text.replace(kBegin.size(), kDigits, fmt::format("{:016x}", XXH3_64bits(text.data() + kHead, text.size() - kHead)));
  return text;
}

const std::string& small_job() {
  static const std::string text = [] {
    const experiments::Sweep sweep = experiments::parse_sweep(
        "base: {model: gpt3-125m, cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 100}, "
        "strategy: {global_batch: 16}}\naxes: {strategy.tp: [1, 2, 3]}\n",
        "small.yaml", {}, experiments::Catalog());
    return farm::serialize_job(sweep, {true, {2, 3}});
  }();
  return text;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_json_text(data, size, max_size, seed, small_job(), sealed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const farm::SerializedJob job = farm::parse_job(text);
    fuzz::require(farm::parse_job(farm::unsharded_job(job)).options.shard.whole());
    const experiments::Sweep sweep = experiments::deserialize(job.sweep);
    const std::string bytes = experiments::serialize(sweep);
    fuzz::require(experiments::serialize(experiments::deserialize(bytes)) == bytes);
  } catch (const core::InputError&) {
  }
  return 0;
}
