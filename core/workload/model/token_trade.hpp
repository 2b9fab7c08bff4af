// Parts whose context-parallel ranks exchange what they need in a way of their own, however attention exchanges keys:
// each rank trades its share of the tokens for a share of the heads, or gathers what it needs of all tokens.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::core::workload {

struct Model;

/// What a LayerPart is, besides, whose context-parallel ranks have all tokens and a share of the heads while they mix
/// tokens.
class TradesTokens {
 public:
  TradesTokens() = default;
  TradesTokens(const TradesTokens&) = delete;
  TradesTokens& operator=(const TradesTokens&) = delete;
  virtual ~TradesTokens() = default;

  /// Returns the size that `tp` x `cp` ranks cannot share out, "heads 6"; empty: none. `tp` ranks can.
  virtual std::string undivided_size(std::int64_t tp, std::int64_t cp) const = 0;
};

/// What a LayerPart is, besides, whose context-parallel ranks gather columns of all tokens.
class GathersTokens {
 public:
  GathersTokens() = default;
  GathersTokens(const GathersTokens&) = delete;
  GathersTokens& operator=(const GathersTokens&) = delete;
  virtual ~GathersTokens() = default;
};

/// Whether a part of the model trades or gathers tokens.
bool exchanges_tokens(const Model& model);

}  // namespace manyworlds::core::workload
