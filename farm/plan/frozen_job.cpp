#include "farm/plan/frozen_job.hpp"

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

// {"check":"0123456789abcdef","objective":...,"shard":[I,N],"sharing":...,"sweep":{...}}
constexpr std::string_view kBegin = "{\"check\":\"", kBehindCheck = "\",", kSweep = ",\"sweep\":", kEnd = "}\n";
constexpr std::size_t kDigits = 16;

std::string checksum(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string text_of(const JobTerms& terms, const std::string& objective, std::string_view sweep) {
  json head{{"objective", objective}, {"sharing", terms.share}};
  if (!terms.shard.whole()) head["shard"] = {terms.shard.number, terms.shard.count};
  const std::string fields = head.dump();
  std::string checked = fields.substr(1, fields.size() - 2);
  checked.append(kSweep).append(sweep).append(kEnd);
  return std::string(kBegin) + checksum(checked) + std::string(kBehindCheck) + checked;
}

Shard shard_of(const JsonView& pair) {
  std::vector<std::int64_t> numbers;
  pair.for_each([&](const JsonView& number) { numbers.push_back(number.whole(1, kMostShards)); });
  if (numbers.size() != 2 || numbers[0] > numbers[1]) throw InputError("frozen sweep: it is of no shard there is");
  return {static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1])};
}

}  // namespace

std::string frozen_job(const experiments::Sweep& sweep, const JobTerms& terms) {
  std::string text = experiments::freeze(sweep);
  while (text.ends_with('\n')) text.pop_back();
  return text_of(terms, sweep.objective, text);
}

FrozenJob open_job(std::string_view text) {
  const std::size_t head = kBegin.size() + kDigits + kBehindCheck.size();
  const std::size_t sweep = text.find(kSweep);  // texts in front of it would have their quotation marks escaped
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd) || sweep == std::string_view::npos || sweep < head ||
      !text.substr(0, head).ends_with(kBehindCheck))
    throw InputError("frozen sweep: it is none, or was written by another version");
  if (checksum(text.substr(head)) != text.substr(kBegin.size(), kDigits))
    throw InputError("frozen sweep: it was changed since it was written");
  const json fields =
      experiments::import::parse_json("{" + std::string(text.substr(head, sweep - head)) + "}", "frozen sweep");
  const JsonView of(fields, "frozen sweep");
  FrozenJob job;
  job.terms.share = of.at("sharing").boolean();
  if (const auto shard = of.find("shard")) job.terms.shard = shard_of(*shard);
  job.objective = of.at("objective").text();
  job.sweep = text.substr(sweep + kSweep.size());
  job.sweep.remove_suffix(kEnd.size());
  return job;
}

std::string read_job(const std::filesystem::path& run_directory) {
  std::string text = io::read_frozen_sweep(run_directory);
  try {
    open_job(text);
  } catch (const InputError&) {
    throw InputError("damaged, or of another version; begin the sweep again in a new directory",
                     io::frozen_sweep_of(run_directory).string());
  }
  return text;
}

std::string whole_job(const FrozenJob& job) {
  return text_of({job.terms.share, {}}, job.objective, job.sweep);
}

}  // namespace manyworlds::farm
