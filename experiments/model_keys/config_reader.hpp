// Looks keys of a configuration up, in the file and then among the defaults of its family, and collects settings, notes
// and refusals.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/layers/layer_list.hpp"
#include "experiments/model_keys/model_config.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::models {

/// Names under which a value may stand; the first that the file has counts.
using Keys = std::initializer_list<std::string_view>;

struct FoundKey {
  const import::Node* value = nullptr;  // null: neither in the file nor among the defaults
  std::string key;
  int line = 0;
  bool assumed = false;  // from the defaults
  bool is_set() const { return value != nullptr && value->kind != import::Node::Kind::null; }
};

/// Layers or keys that cannot be modelled.
struct Refusal {
  int line = 0;
  std::string text;
};

/// A part that the model does not have: so many parameters, or so many layers like the last one, each with a projection
/// of two inputs.
struct LeftOut {
  std::string key, text;
  std::int64_t parameters = 0, layers = 0;
};

class ConfigReader {
 public:
  /// `outer` is the document around `config`, or `config` itself. `defaults` is a JSON object.
  ConfigReader(const import::Node& config, const import::Node& outer, std::string_view defaults, ModelConfig& to);

  FoundKey find(Keys keys);
  /// Sets an option from a key that the file or the family's defaults must have.
  void take(const std::string& option, Keys keys);
  /// Sets an option unless the key is absent or null. Returns whether it did.
  bool take_if_set(const std::string& option, Keys keys);
  /// Sets an option that every model of the family has.
  void set(const std::string& option, core::OptionValue value, const std::string& key = {});

  /// Return the value of a key, or `otherwise` if it is absent or null.
  std::int64_t integer(Keys keys, std::int64_t otherwise);
  double real(Keys keys, double otherwise);
  bool flag(Keys keys, bool otherwise);
  std::string text(Keys keys, const std::string& otherwise);
  /// Returns the items of a list with one entry for each layer.
  const std::vector<import::Node>& layer_list(const FoundKey& list);
  /// Returns an integer option that was set; 0 if it was not.
  std::int64_t setting(std::string_view option) const;

  void refuse(const FoundKey& at, const std::string& what) { refuse(at.line, what); }
  void refuse(int line, std::string what) { refusals_.push_back({line, std::move(what)}); }
  void note(std::string key, std::string text) { to_.without_effect.push_back({std::move(key), std::move(text)}); }
  /// Adds what changes no step and is the model's: an argument of Megatron-LM, or config.KEY if there is none.
  void carry(std::string name, std::vector<std::string> values = {}) {
    to_.carried.push_back({std::move(name), std::move(values)});
  }
  /// Notes that a value which is carried is the default of the family's class.
  void note_carried_default(std::string key, std::string value) {
    to_.carried_defaults.push_back({std::move(key), std::move(value)});
  }
  std::vector<ConfigValue>& values() { return to_.values; }
  /// The layers of the language model, of a family whose layers are not all alike, and the networks in front of it.
  LayerList& layers() { return layers_; }
  std::vector<Network>& front() { return front_; }
  Ends& ends() { return ends_; }
  /// Sets the tokens of a sample, where they do not follow from the longest that the model accepts.
  void set_sequence(std::int64_t tokens) { to_.sequence = tokens; }
  /// Sets `architecture`, and `layers` to their number with those of the networks in front, if there are any layers.
  void set_architecture();

  void leave_out(LeftOut part) { left_out_.push_back(std::move(part)); }
  /// Throws an InputError at a key.
  [[noreturn]] void fail(const FoundKey& at, const std::string& what) const;

  const std::vector<Refusal>& refusals() const { return refusals_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  /// Returns whether a function looked the key up.
  bool is_read(const std::string& key) const { return read_.count(key) > 0; }
  /// Returns what the family's class takes for keys that a file lacks, a mapping.
  const import::Node& defaults() const { return defaults_; }
  /// Returns the keys that functions looked up.
  const std::set<std::string>& read() const { return read_; }
  const ModelConfig& config() const { return to_; }
  const std::string& file() const { return *config_.file; }

 private:
  const import::Node& config_;
  const import::Node& outer_;
  import::Node defaults_;
  ModelConfig& to_;
  std::set<std::string> read_;
  std::vector<Refusal> refusals_;
  std::vector<LeftOut> left_out_;
  LayerList layers_;
  std::vector<Network> front_;
  Ends ends_;
};

/// Returns the numbers of layers as ranges: "0-2, 4-6, 8-10 and 9 more".
std::string layer_ranges(const std::vector<std::size_t>& layers);

/// Returns n if of `count` layers every n-th, from the first on, is in `layers` and no other is; 0 if that is not so.
std::int64_t period_of(const std::vector<std::size_t>& layers, std::size_t count);

}  // namespace manyworlds::experiments::models
