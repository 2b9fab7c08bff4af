#include "experiments/msccl/given_algorithms.hpp"

#include <limits>

#include "experiments/msccl/check_algorithm.hpp"

namespace manyworlds::experiments::msccl {

namespace collective = core::collective;

std::int64_t loop_bytes(Protocol protocol) {
  if (protocol == Protocol::simple) return 2 << 20;
  return protocol == Protocol::ll ? 32 << 10 : 576'000;
}

collective::Protocol protocol_of(Protocol protocol) {
  if (protocol == Protocol::simple) return collective::Protocol::simple;
  return protocol == Protocol::ll ? collective::Protocol::ll : collective::Protocol::ll128;
}

collective::GivenAlgorithm given_of(const Algorithm& algorithm) {
  collective::GivenAlgorithm result;
  result.name = algorithm.name;
  result.kind = algorithm.kind;
  result.members = static_cast<std::uint32_t>(algorithm.gpus.size());
  result.chunks = algorithm.chunks;
  result.loop_bytes = loop_bytes(algorithm.protocol);
  result.slots = slots_of(algorithm.protocol);
  result.protocol = protocol_of(algorithm.protocol);
  for (std::uint32_t gpu = 0; gpu < result.members; ++gpu) {
    const auto first = static_cast<std::int32_t>(result.blocks.size());
    for (const ThreadBlock& block : algorithm.gpus[gpu].blocks) {
      const auto channel = static_cast<std::uint32_t>(std::max(block.channel, 0));
      collective::ThreadBlock own{gpu, block.send, block.receive, channel, {}};
      for (const Step& step : block.steps)
        own.steps.push_back({step.receives(), step.sends(), step.kind == StepKind::receive_copy_send,
                             static_cast<std::uint32_t>(step.count), step.wait_block < 0 ? -1 : first + step.wait_block,
                             std::max(step.wait_step, 0), step.is_waited_for});
      result.blocks.push_back(std::move(own));
    }
  }
  return result;
}

collective::TunerRule rule_of(std::string_view text, const std::string& path) {
  const Algorithm algorithm = parse_algorithm(text, path);
  check_algorithm(algorithm, path);
  collective::TunerRule rule;
  rule.kind = algorithm.kind;
  rule.min_bytes = algorithm.min_bytes;
  rule.max_bytes = algorithm.max_bytes > 0 ? algorithm.max_bytes : std::numeric_limits<std::int64_t>::max();
  rule.algorithm = collective::Algorithm::given;
  rule.protocol = protocol_of(algorithm.protocol);
  rule.members = std::ssize(algorithm.gpus);
  rule.given = {std::make_shared<const collective::GivenAlgorithm>(given_of(algorithm))};
  rule.file = path;
  return rule;
}

collective::TunerRule RuleCache::get(const std::string& path, std::string_view text) {
  const std::lock_guard lock(mutex_);
  auto known = known_.find(path);
  if (known == known_.end()) known = known_.emplace(path, rule_of(text, path)).first;
  return known->second;
}

}  // namespace manyworlds::experiments::msccl
