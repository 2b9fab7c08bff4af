#include "farm/plan/sweep_task_spec.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::farm {

namespace {

using core::sharing::ByteReader;
using core::sharing::ByteWriter;
using core::sharing::Key;

constexpr std::size_t kKeyBytes = 5 * sizeof(std::uint64_t);

void put(ByteWriter& to, const Key& key) {
  for (const auto word : key.digest) to.put(word);
  for (const auto word : key.check) to.put(word);
  to.put(key.length);
}

Key key(ByteReader& from) {
  Key result;
  for (auto& word : result.digest) word = from.get<std::uint64_t>();
  for (auto& word : result.check) word = from.get<std::uint64_t>();
  result.length = from.get<std::uint64_t>();
  return result;
}

}  // namespace

std::string encode(const SweepSharedSettings& common) {
  return ByteWriter().put(common.share).text(common.settings).take();
}

SweepSharedSettings decode_common(const std::string& bytes) {
  ByteReader from(bytes);
  SweepSharedSettings common;
  common.share = from.get<std::uint8_t>() != 0;
  common.settings = from.text();
  from.end();
  return common;
}

std::string encode(const SweepTaskSpec& spec) {
  ByteWriter to;
  to.put(spec.kind).text(spec.settings);
  put(to, spec.key);
  to.put(spec.collective_op).put(static_cast<std::uint64_t>(spec.inputs.size()));
  for (const Key& input : spec.inputs) put(to, input);
  return to.take();
}

SweepTaskSpec decode_task_spec(const std::string& bytes) {
  ByteReader from(bytes);
  SweepTaskSpec spec;
  spec.kind = from.get<SweepTaskSpec::Kind>();
  MANYWORLDS_CHECK(spec.kind <= SweepTaskSpec::Kind::step, "order of kind {}", static_cast<int>(spec.kind));
  spec.settings = from.text();
  spec.key = key(from);
  spec.collective_op = from.get<std::uint32_t>();
  spec.inputs.resize(from.count(kKeyBytes));
  for (Key& input : spec.inputs) input = key(from);
  from.end();
  return spec;
}

}  // namespace manyworlds::farm
