// From document nodes to settings: assigns the values that the user gave to the keys that they are for.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>

#include "experiments/catalog/catalog.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/settings/find_key.hpp"
#include "experiments/settings/practice.hpp"
#include "experiments/settings/required_settings.hpp"

namespace manyworlds::experiments {

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

/// Returns the document of one experiment with every key, as a user could write it under `base`.
nlohmann::json document(const Settings& settings);

nlohmann::json to_json(const core::OptionValue& value);

}  // namespace manyworlds::experiments
