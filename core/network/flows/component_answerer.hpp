// Answers questions of other processes about components, of any transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/network/engine/engine.hpp"

namespace manyworlds::core::network {

class ComponentAnswerer {
 public:
  /// Returns the encoded ComponentAnswer to an encoded ComponentQuestion. Throws InternalError if that is damaged.
  std::string answer(const std::string& question);

 private:
  struct KnownEngine {
    Transport transport;
    std::unique_ptr<Engine> engine;
  };
  std::vector<KnownEngine> engines_;  // a few, in order of last use
};

}  // namespace manyworlds::core::network
