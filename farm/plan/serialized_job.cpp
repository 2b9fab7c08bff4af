#include "farm/plan/serialized_job.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm {

namespace {

using core::InputError;
using experiments::import::JsonView;
using nlohmann::json;

// Format: {"check":"0123456789abcdef","objective":...,"shard":[I,N],"sharing":...,"sweep":{...}}
constexpr std::string_view kBegin = "{\"check\":\"", kAfterChecksum = "\",", kSweep = ",\"sweep\":", kEnd = "}\n";
constexpr std::size_t kChecksumDigits = 16;

std::string checksum(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string text_of(const JobOptions& options, const std::string& objective, std::string_view sweep) {
  json head{{"objective", objective}, {"sharing", options.share}};
  if (!options.shard.whole()) head["shard"] = {options.shard.number, options.shard.count};
  const std::string fields = head.dump();
  std::string checked = fields.substr(1, fields.size() - 2);
  checked.append(kSweep).append(sweep).append(kEnd);
  return std::string(kBegin) + checksum(checked) + std::string(kAfterChecksum) + checked;
}

Shard shard_of(const JsonView& pair) {
  std::vector<std::int64_t> numbers;
  pair.for_each([&](const JsonView& number) { numbers.push_back(number.whole(1, kMaxShards)); });
  if (numbers.size() != 2 || numbers[0] > numbers[1]) throw InputError("resolved sweep: invalid shard");
  return {static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1])};
}

}  // namespace

std::string serialize_job(const experiments::Sweep& sweep, const JobOptions& options) {
  std::string text = experiments::serialize(sweep);
  while (text.ends_with('\n')) text.pop_back();
  return text_of(options, sweep.objective, text);
}

SerializedJob parse_job(std::string_view text) {
  const std::size_t head = kBegin.size() + kChecksumDigits + kAfterChecksum.size();
  const std::size_t sweep = text.find(kSweep);  // unambiguous: earlier texts have their quotation marks escaped
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd) || sweep == std::string_view::npos || sweep < head ||
      !text.substr(0, head).ends_with(kAfterChecksum))
    throw InputError("resolved sweep: invalid, or written by another version");
  if (checksum(text.substr(head)) != text.substr(kBegin.size(), kChecksumDigits))
    throw InputError("resolved sweep: it was changed after it was written");
  const json fields =
      experiments::import::parse_json("{" + std::string(text.substr(head, sweep - head)) + "}", "resolved sweep");
  const JsonView view(fields, "resolved sweep");
  SerializedJob job;
  job.options.share = view.at("sharing").boolean();
  if (const auto shard = view.find("shard")) job.options.shard = shard_of(*shard);
  job.objective = view.at("objective").text();
  job.sweep = text.substr(sweep + kSweep.size());
  job.sweep.remove_suffix(kEnd.size());
  return job;
}

std::string read_serialized_job(const std::filesystem::path& run_directory) {
  std::string text = io::read_serialized_sweep(run_directory);
  try {
    parse_job(text);
  } catch (const InputError&) {
    throw InputError("damaged, or of another version; begin the sweep again in a new directory",
                     io::serialized_sweep_path(run_directory).string());
  }
  return text;
}

experiments::Experiment experiment_of_run(const std::filesystem::path& run_directory, std::int64_t id) {
  const std::string text = read_serialized_job(run_directory);
  experiments::Sweep sweep = experiments::deserialize(parse_job(text).sweep);
  for (experiments::Experiment& one : sweep.experiments)
    if (one.id == id) return std::move(one);
  throw InputError(fmt::format("the run has no experiment {}; `manyworlds top RUN` tells the ids", id));
}

std::string unsharded_job(const SerializedJob& job) {
  return text_of({job.options.share, {}}, job.objective, job.sweep);
}

}  // namespace manyworlds::farm
