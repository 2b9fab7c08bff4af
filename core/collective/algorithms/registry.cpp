#include "core/collective/algorithms/registry.hpp"

#include <algorithm>
#include <array>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {

namespace {

AlgorithmInfo listed(Algorithm algorithm, const char* name, AlgorithmInfo info) {
  info.algorithm = algorithm;
  info.name = name;
  return info;
}

}  // namespace

#define MANYWORLDS_DECLARE(name) AlgorithmInfo name##_algorithm();
MANYWORLDS_ALGORITHMS(MANYWORLDS_DECLARE)
AlgorithmInfo info_of_given();

const std::vector<AlgorithmInfo>& algorithms() {
#define MANYWORLDS_CALL(name) listed(Algorithm::name, #name, name##_algorithm()),
  static const std::vector<AlgorithmInfo> all{MANYWORLDS_ALGORITHMS(MANYWORLDS_CALL)};
  return all;
}

const AlgorithmInfo& info_of(Algorithm algorithm) {
  static const AlgorithmInfo given = listed(Algorithm::given, "given", info_of_given());
  if (algorithm == Algorithm::given) return given;
  return algorithms().at(static_cast<std::size_t>(algorithm));
}

bool supports(Algorithm algorithm, Kind kind) {
  const std::vector<Kind>& kinds = info_of(algorithm).kinds;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

const char* name_of(Kind kind) {
  static constexpr std::array kNames{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                     "broadcast",  "send",       "reduce"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string Shape::text() const {
  std::string text = fmt::format("{} {} n={} {} B", name_of(kind),
                                 kind == Kind::send ? "direct" : info_of(algorithm).name, members, bytes);
  if (given) text += fmt::format(" '{}'", given->name);
  if (protocol != Protocol::none) text += fmt::format(" {}", name_of(protocol));
  if (channels > 1) text += fmt::format(" channels={}", channels);
  if (chunk_bytes > 0) text += fmt::format(" chunks={} B", chunk_bytes);
  if (queue_pairs > 1) text += fmt::format(" queue pairs={}", queue_pairs);
  if (message_bytes > 0) text += fmt::format(" messages={} B", message_bytes);
  if (node_bytes > 0) text += fmt::format(" to each node {} B", node_bytes);
  if (at_once) text += " at once";
  if (node_mesh) text += " mesh";
  if (split.even()) return text;
  if (kind == Kind::broadcast || kind == Kind::reduce) return text + fmt::format(" root={}", root());
  const auto [min_bytes, max_bytes] = std::minmax_element(split.bytes.begin(), split.bytes.end());
  return text + fmt::format(" {} {}-{} B", split.by_source ? "each from" : "each to", *min_bytes, *max_bytes);
}

std::uint32_t Shape::root() const {
  if (split.even()) return 0;
  return static_cast<std::uint32_t>(std::max_element(split.bytes.begin(), split.bytes.end()) - split.bytes.begin());
}

ProtocolCosts costs_of(const Shape& shape) {
  const bool calibrated = shape.protocol > Protocol::calibrated;
  return calibrated ? shape.calibrated : costs_of(shape.protocol, info_of(shape.algorithm).latency_group);
}

std::shared_ptr<const TransferGenerator> generator_of(const Shape& shape, std::uint32_t width) {
  const AlgorithmInfo& info = info_of(shape.algorithm);
  if (shape.queue_pairs > 1) return nullptr;  // its transfers are written out
  if (shape.members < 2 || shape.kind == Kind::send || info.generator == nullptr) return nullptr;
  return info.generator(shape, width);
}

Dag build(const Shape& shape, Trace* trace) {
  DagBuilder dag(shape, trace);
  if (shape.members < 2) return dag.finish();
  if (shape.kind == Kind::send) {
    dag.add(0, 1, {}, Effect::copy);
  } else {
    MANYWORLDS_CHECK(supports(shape.algorithm, shape.kind), "{} cannot do {}", info_of(shape.algorithm).name,
                     name_of(shape.kind));
    info_of(shape.algorithm).add(dag, shape);
  }
  return dag.finish();
}

}  // namespace manyworlds::core::collective
