// A tower of transformer layers over the patches of one image, by its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Sizes of a tower. All have norms before their parts, biases, GELU, and attention of all patches to all.
struct ImageTower {
  std::int64_t hidden = 0, heads = 0, layers = 0, ffn_hidden = 0;
  std::int64_t patches = 0;       // of a sample's image
  std::int64_t inputs = 0;        // numbers of a patch
  std::int64_t extra_tokens = 0;  // beside the patches, as of a class
  bool patch_bias = true;         // the patches' matrix has a bias
  bool learned_positions = true;  // a table with a row for each patch and extra token
  bool norm_at_entrance = false;  // behind the embedding
  std::int64_t norms_at_end = 1;  // behind the last layer
};

/// Looks up sizes in the member `name` of a document, with the defaults of a class.
class TowerReader {
 public:
  /// Throws an InputError if the member is no object.
  TowerReader(ConfigReader& reader, const import::Node& document, std::string_view name, std::string_view defaults,
              ModelConfig& config);

  /// Returns a size from 1 to `most`. Throws an InputError otherwise.
  std::int64_t size(Keys keys, std::int64_t most = 1'000'000);
  /// Returns a size or a list of two equal ones.
  std::int64_t side(Keys keys, std::int64_t most);
  ConfigReader& keys() { return own_; }
  /// Refuses a text that is not `expected`.
  void require_text(std::string_view key, std::string_view expected);
  /// Refuses a flag that is not `expected`.
  void require_flag(std::string_view key, bool expected);
  [[noreturn]] void fail(const std::string& what) const;
  /// Tells or refuses the keys that nothing looked up.
  void judge_rest();

 private:
  ConfigReader& reader_;
  std::string name_;
  const import::Node& member_;
  ConfigReader own_;
};

/// Returns the network of a tower. Its layers end with `last`, a part, unless that is empty.
Network tower_network(const ImageTower& tower, const std::string& last = {});

/// Returns a network of one block, `parts`, with `options` of its own.
Network single_block(const std::string& name, const std::string& options, const std::string& parts);

}  // namespace manyworlds::experiments::models
