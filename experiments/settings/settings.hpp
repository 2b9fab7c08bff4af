// From document nodes to settings: finds dotted keys in the config schema and assigns the values that the user gave.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>

#include "experiments/config/config_schema.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/settings/practice.hpp"

namespace manyworlds::experiments {

/// The meaning of a dotted key. Exactly one of section, option and choice_section is set.
struct Target {
  std::string path;                          // canonical key, as in Settings
  const Section* section = nullptr;          // a whole section, or a component by name
  const core::OptionInfo* option = nullptr;  // a single value
  const Section* choice_section = nullptr;   // section of whose chosen component `member` is an option
  std::string member;
  std::string component;  // with an option: the component that has it, which must be the chosen one; with a section:
                          // the component whose options are given
};

/// Resolves a key. Throws InputError at `at`, with the nearest name, if the config schema has no such key.
Target find_key(const std::string& dotted, const import::Node& at);

/// Resolves a key as people type it: its last words suffice, as in "tp", if only one key ends with them.
Target find_typed_key(const std::string& typed, const import::Node& at);

/// Where the user wrote each setting (nodes without content), for messages.
using Places = std::map<std::string, import::Node>;

class Assigner {
 public:
  /// `places` may be null if no messages need them. Under today's practice, settings that assume_today() fills in are
  /// deferred.
  Assigner(const Catalog& catalog, Settings& settings, Places* places, Practice practice = Practice::of_2021)
      : catalog_(catalog), settings_(settings), places_(places), practice_(practice) {}

  void defaults();
  void assign(const Target& target, const import::Node& value);
  void assign_base(const import::Node& base) { assign_section(config_schema(), "", base); }

 private:
  void assign_section(const Section& section, const std::string& path, const import::Node& node);
  void assign_entry(const Section& section, const std::string& path, const import::Entry& entry);
  void assign_choice(const Section& section, const std::string& path, const import::Node& node);
  void assign_catalog_entry(const Section& section, const std::string& path, const std::string& name,
                            const import::Node& at);
  void reset(const Section& section, const std::string& path);
  void add_optional_sections(const std::string& path);
  bool starts_with_default(const std::string& path, const core::OptionInfo& option) const;
  void record_place(const std::string& path, const import::Node& at);
  void set(const std::string& path, core::OptionValue value, const import::Node& at);

  const Catalog& catalog_;
  Settings& settings_;
  Places* places_;
  Practice practice_;
};

/// Replaces defaults that follow from other settings: kv_heads 0 by heads, ffn_hidden 0 by 4 x hidden, a missing
/// precision by bf16, or by fp16 if some GPU has no bf16.
void derive(Settings& settings);

/// What an experiment is read for: whole training steps, or the network alone.
enum class Scope : std::uint8_t { step, network };

/// Returns the first required value that is missing, as its key and a message that asks for it; empty if there is none.
std::pair<std::string, std::string> missing_required(const Settings& settings, Scope scope = Scope::step);

/// Returns the document of one experiment with every key, as a user could write it under `base`.
nlohmann::json document(const Settings& settings);

nlohmann::json to_json(const core::OptionValue& value);

}  // namespace manyworlds::experiments
