#include "farm/plan/sweep_order.hpp"

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
  Key got;
  for (auto& word : got.digest) word = from.get<std::uint64_t>();
  for (auto& word : got.check) word = from.get<std::uint64_t>();
  got.length = from.get<std::uint64_t>();
  return got;
}

}  // namespace

std::string encode(const SweepCommon& common) {
  return ByteWriter().put(common.share).text(common.settings).take();
}

SweepCommon decode_common(const std::string& bytes) {
  ByteReader from(bytes);
  SweepCommon common;
  common.share = from.get<std::uint8_t>() != 0;
  common.settings = from.text();
  from.end();
  return common;
}

std::string encode(const SweepOrder& order) {
  ByteWriter to;
  to.put(order.kind).text(order.settings);
  put(to, order.key);
  to.put(order.use).put(static_cast<std::uint64_t>(order.inputs.size()));
  for (const Key& input : order.inputs) put(to, input);
  return to.take();
}

SweepOrder decode_order(const std::string& bytes) {
  ByteReader from(bytes);
  SweepOrder order;
  order.kind = from.get<SweepOrder::Kind>();
  MANYWORLDS_CHECK(order.kind <= SweepOrder::Kind::step, "order of kind {}", static_cast<int>(order.kind));
  order.settings = from.text();
  order.key = key(from);
  order.use = from.get<std::uint32_t>();
  order.inputs.resize(from.count(kKeyBytes));
  for (Key& input : order.inputs) input = key(from);
  from.end();
  return order;
}

}  // namespace manyworlds::farm
