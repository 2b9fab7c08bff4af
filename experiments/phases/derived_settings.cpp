#include "experiments/phases/derived_settings.hpp"

#include <fmt/format.h>

#include "experiments/phases/merged_pairs.hpp"
#include "experiments/phases/pool_clusters.hpp"

namespace manyworlds::experiments::phases {
namespace {

constexpr const char *kBatch = "strategy.global_batch", *kMicroBatch = "strategy.micro_batch";
constexpr const char *kRecompute = "strategy.recompute", *kSequenceParallel = "strategy.sequence_parallel";
constexpr const char *kZero = "strategy.zero", *kContext = "strategy.cp", *kGraphs = "strategy.stack.cuda_graphs";
constexpr const char *kSequence = "model.sequence", *kInference = "model.inference", *kCached = "model.cached_tokens";
constexpr const char *kKeyHeads = "model.kv_heads", *kTensor = "strategy.tp";
constexpr const char *kKind = "its kind", *kPass = "a pass without gradients";

}  // namespace

std::int64_t written_key_heads(const WrittenSettings& written) {
  return integer_of(written.settings(), kKeyHeads, 0);
}

DerivedSettings kind_settings(const Phase& phase, const WrittenSettings& written) {
  DerivedSettings derived(phase.place);
  const bool scores = phase.kind == Kind::scoring;
  derived.set(kInference, scores ? "scoring" : "none", kKind).set(kCached, 0, kKind);
  if (!scores) return derived;
  if (!written.change_says(kRecompute)) derived.set(kRecompute, "none", kPass);
  merge_pairs(written.settings(), derived);
  return derived;
}

DerivedSettings replica_settings(const Phase& phase, const WrittenSettings& written) {
  DerivedSettings derived(phase.place);
  derived.set(kInference, "generation", kKind).set(kRecompute, "none", kPass);
  derived.set(kSequenceParallel, "false", "new tokens, of which each rank has all");
  derived.set(kZero, 0, "weights that each replica has whole and gathers at no step");
  merge_pairs(written.settings(), derived);
  const std::int64_t heads = written_key_heads(written), ranks = integer_of(written.settings(), kTensor, 1);
  const bool has_queries = integer_of(written.settings(), "model.heads", 0) % ranks == 0;  // else a rule says so
  if (heads > 0 && heads < ranks && ranks % heads == 0 && has_queries)
    derived.set(
        kKeyHeads, ranks,
        fmt::format("{} of keys and values, which engines copy to {} tensor ranks", counted(heads, "head"), ranks));
  return derived;
}

DerivedSettings pass_settings(const Phase& phase, const WrittenSettings& written, std::int64_t replicas,
                              const DecodingPoint& point, std::int64_t sequence) {
  const bool decodes = point.length > 0;
  const std::string samples = counted(point.samples, decodes ? "sample" : "prompt");
  DerivedSettings derived(phase.place);
  derived.set(kSequence, sequence, decodes ? "a decoding step, which makes one token" : "prompt_tokens");
  derived.set(kCached, point.length, "the tokens before those of a pass");
  derived.set(kMicroBatch, point.samples, fmt::format("the {} that a replica has at once", samples));
  derived.set(kBatch, point.samples * replicas, fmt::format("{} of {}", counted(replicas, "replica"), samples));
  if (decodes && !says_graphs(written)) derived.set(kGraphs, "all", "decoding steps as engines launch them");
  return derived;
}

void refuse_what_follows(const Phase& phase, const WrittenSettings& written) {
  for (const char* key : {kBatch, kMicroBatch, kSequence, kCached, kInference, kSequenceParallel, kRecompute, kZero})
    if (written.change_says(key))
      fail_at(
          phase, written.place_of({key}, phase.place),
          fmt::format("'{}' of a rollout follows from its kind, prompts, tokens and concurrent; leave it out", key));
  const std::int64_t cp = integer_of(written.settings(), kContext, 1);
  if (cp > 1)
    fail_at(phase, written.place_of({kContext}, phase.place),
            fmt::format("'{}' of a rollout must be 1, not {}: a cache is not divided over a context", kContext, cp));
}

bool says_graphs(const WrittenSettings& written) {
  return written.say(kGraphs);
}

}  // namespace manyworlds::experiments::phases
