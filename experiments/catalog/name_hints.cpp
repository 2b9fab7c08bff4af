#include "experiments/catalog/name_hints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments {
namespace {

using Names = std::vector<std::string>;

std::string quoted(const Names& names) {
  Names all;
  for (const std::string& name : names) all.push_back("'" + name + "'");
  return fmt::format("{}", fmt::join(all, " or "));
}

Names words_of(const std::string& plain) {
  Names words(1);
  for (const char c : plain) {
    if (c == '_')
      words.emplace_back();
    else
      words.back().push_back(c);
  }
  return words;
}

/// Returns the part of a GPU's name that names the chip: h100 of nvidia_h100_nvl; empty if there is none.
std::string chip_of(const std::string& plain) {
  constexpr std::array<std::string_view, 6> kVendors{"nvidia", "amd", "tesla", "instinct", "geforce", "radeon"};
  for (const std::string& word : words_of(plain))
    if (std::find(kVendors.begin(), kVendors.end(), word) == kVendors.end())
      return std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) ? word : "";
  return "";
}

Names gpus_of_chip(const std::string& name, const Catalog::Entries& known) {
  const std::string chip = chip_of(plain_name(name));
  Names found;
  for (const auto& [entry, values] : known)
    if (const Names words = words_of(entry); !chip.empty() && words.front() == chip) found.push_back(entry);
  return found;
}

/// Returns the entries of which `is_meant` holds for their name or an alias.
template <class IsMeant>
Names entries_named(const Catalog::Entries& known, IsMeant is_meant) {
  Names found;
  for (const auto& [entry, values] : known)
    if (is_meant(entry) || std::any_of(values.also_called.begin(), values.also_called.end(), is_meant))
      found.push_back(entry);
  return found;
}

/// Returns the GPUs one of whose names has one character other than `name`. One with a character more or less is likely
/// another chip: an H20 is no H200.
Names gpus_nearly_named(const std::string& name, const Catalog::Entries& known) {
  const std::string plain = plain_name(name);
  return entries_named(
      known, [&](const std::string& one) { return one.size() == plain.size() && edit_distance(one, plain) == 1; });
}

/// Returns the name of a model on the hub without its owner, and without what tells how it was trained further: those
/// have the same shape.
std::string shape_name(const std::string& hub_name) {
  std::string name = plain_name(hub_name.substr(hub_name.rfind('/') + 1));
  if (name.starts_with("meta_")) name.erase(0, 5);
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string_view ending :
         {"_instruct", "_chat", "_base", "_hf", "_it", "_fp8", "_v0.1", "_v0.2", "_v0.3"})
      if (name.ends_with(ending)) name.resize(name.size() - ending.size()), shorter = true;
  }
  return name;
}

Names models_of_shape(const std::string& name, const Catalog::Entries& known) {
  const std::string wanted = shape_name(name);
  return entries_named(known, [&](const std::string& one) { return shape_name(one) == wanted; });
}

/// Returns whether a name is that of a model on the hub: OWNER/MODEL.
bool is_hub_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() && name.find('/', slash + 1) == name.npos;
}

}  // namespace

std::string plain_name(const std::string& name) {
  std::string result = name;
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return c == ' ' || c == '-' ? '_' : static_cast<char>(std::tolower(c)); });
  return result;
}

std::string unknown_name_hint(const std::string& kind, const std::string& name, const Catalog::Entries& known) {
  if (kind == "gpus")
    if (const Names found = gpus_of_chip(name, known); !found.empty())
      return fmt::format("; did you mean {}?", quoted(found));
  if (kind == "gpus")
    if (const Names found = gpus_nearly_named(name, known); !found.empty())
      return fmt::format("; did you mean {}?", quoted(found));
  if (kind == "models" && is_hub_name(name)) {
    if (const Names found = models_of_shape(name, known); !found.empty())
      return fmt::format("; did you mean {}, which has its shape?", quoted(found));
    return fmt::format("; it is on no list here: give the path of its config.json (`hf download {} config.json`)",
                       name);
  }
  Names names;
  for (const auto& [entry, values] : known) names.push_back(entry);
  const std::string near = suggestion(name, names);
  return near.starts_with("; did") ? near
                                   : fmt::format("; `manyworlds list {}` names the {} known", kind, names.size());
}

}  // namespace manyworlds::experiments
