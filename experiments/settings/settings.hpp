// From document nodes to settings: finds dotted keys in the vocabulary and assigns what the user gave them.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>

#include "experiments/config/vocabulary.hpp"
#include "experiments/config/world.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/settings/practice.hpp"

namespace manyworlds::experiments {

/// What a dotted key means. Exactly one of branch, option and choice is set.
struct Target {
  std::string path;                          // canonical, the key in Settings
  const Branch* branch = nullptr;            // a whole section, or a component by name
  const core::OptionInfo* option = nullptr;  // one value
  const Branch* choice = nullptr;            // an option of whichever component is chosen there: `member`
  std::string member;
  std::string component;  // of an option that belongs to one component: it must be the chosen one; of a branch: the
                          // component whose options are given
};

/// Throws InputError at `at`, with the nearest name, where the vocabulary has no such key.
Target find_key(const std::string& dotted, const import::Node& at);

/// The same for a key as people type it: its last words alone, as in "tp", where only one key ends so.
Target find_typed_key(const std::string& typed, const import::Node& at);

/// Where the user wrote a setting (a node without content), for messages about it.
using Places = std::map<std::string, import::Node>;

class Assigner {
 public:
  /// `places` may be null: then nobody asks where. Of today's practice what assume_today() fills in stays open.
  Assigner(const Catalog& catalog, Settings& settings, Places* places, Practice practice = Practice::of_2021)
      : catalog_(catalog), settings_(settings), places_(places), practice_(practice) {}

  void defaults();
  void assign(const Target& target, const import::Node& value);
  void assign_base(const import::Node& base) { fill(vocabulary(), "", base); }

 private:
  void fill(const Branch& branch, const std::string& path, const import::Node& node);
  void fill_entry(const Branch& branch, const std::string& path, const import::Entry& entry);
  void choose(const Branch& branch, const std::string& path, const import::Node& node);
  void copy_catalog(const Branch& branch, const std::string& path, const std::string& name, const import::Node& at);
  void reset(const Branch& branch, const std::string& path);
  void open(const std::string& path);
  bool has_value(const std::string& path, const core::OptionInfo& option) const;
  void mark(const std::string& path, const import::Node& at);
  void set(const std::string& path, core::OptionValue value, const import::Node& at);

  const Catalog& catalog_;
  Settings& settings_;
  Places* places_;
  Practice practice_;
};

/// Replaces defaults that follow from other settings: kv_heads 0 by heads, ffn_hidden 0 by 4 x hidden, no precision by
/// bf16, or by fp16 where a GPU has no bf16.
void derive(Settings& settings);

/// What an experiment is read for: whole training steps, or the network by itself.
enum class Scope : std::uint8_t { step, network };

/// The first figure that this world needs and nobody gave, as "key" and a message that asks for it; empty if none.
std::pair<std::string, std::string> absent_figure(const Settings& settings, Scope scope = Scope::step);

/// The document of one experiment with every key, as a user could have written it under `base`.
nlohmann::json document(const Settings& settings);

nlohmann::json to_json(const core::OptionValue& value);

}  // namespace manyworlds::experiments
