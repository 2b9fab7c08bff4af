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
  /// Returns the name of the block of these parts; of a block that there is not yet, `prefix` and its number.
  std::string name_of(const std::string& parts, const std::string& prefix) const;
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

/// What is around the layers of the last network, and its name.
struct Ends {
  bool embedding = true, head = true;  // as those of a language model
  std::string network = "text";
};

/// Returns the text of an architecture: that of `layers` alone if there are no networks in front of it.
std::string architecture_text(const std::vector<Network>& front, const LayerList& layers, const Ends& ends);

}  // namespace manyworlds::experiments::models
