// The layers of a model, one after another, written as `model.architecture`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace manyworlds::experiments::models {

/// Layers of one residual stream: named blocks of parts, and the block of each layer.
class LayerList {
 public:
  /// Adds a layer. `parts` is a JSON list of parts; layers of one name have the same parts.
  void add(const std::string& name, const std::string& parts);
  bool empty() const { return layers_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(layers_.size()); }
  /// Puts a part before the first layer's others, or behind the last layer's.
  void begin_with(const std::string& part);
  void end_with(const std::string& part);
  /// Returns `"blocks": {…}, "layers": […]`, in which layers that recur are repetitions.
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> blocks_;  // name and parts
  std::vector<std::size_t> layers_;                          // index into `blocks_`
};

/// A network in front of the language model, as a tower of images.
struct Network {
  std::string name;
  std::string options;  // of the model that it has instead: `"hidden": 1152, "sequence": 1024`
  LayerList layers;
};

/// Returns the text of an architecture: that of `layers` alone if there are no networks in front of it.
std::string architecture_text(const std::vector<Network>& front, const LayerList& layers, const std::string& name,
                              bool has_ends);

}  // namespace manyworlds::experiments::models
