#include "experiments/keys/section.hpp"

#include <algorithm>

namespace manyworlds::experiments {

using core::OptionInfo;

bool has_default(const OptionInfo& option) {
  if (const auto* integral = std::get_if<std::int64_t>(&option.default_value))
    return static_cast<double>(*integral) >= option.minimum && static_cast<double>(*integral) <= option.maximum;
  if (const auto* floating = std::get_if<double>(&option.default_value))
    return *floating >= option.minimum && *floating <= option.maximum;
  const auto* text = std::get_if<std::string>(&option.default_value);
  return text == nullptr || !text->empty() || option.choices.empty();
}

bool is_file(const OptionInfo& option) {
  return option.unit == "file";
}

const OptionInfo* find_option(const std::vector<OptionInfo>& options, const std::string& name) {
  for (const OptionInfo& info : options)
    if (info.name == name) return &info;
  return nullptr;
}

const Section* find_section(const std::vector<Section>& subsections, const std::string& name) {
  for (const Section& section : subsections)
    if (section.name == name) return &section;
  return nullptr;
}

const Choice* find_choice(const Section& section, const std::string& name) {
  for (const Choice& candidate : section.choices)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

const Choice* choice_named(const Section& section, std::string typed) {
  std::replace(typed.begin(), typed.end(), '-', '_');
  if (const Choice* exact = find_choice(section, typed)) return exact;
  for (const Choice& candidate : section.choices)
    if (std::count(candidate.also_called.begin(), candidate.also_called.end(), typed) > 0) return &candidate;
  return nullptr;
}

std::vector<std::string> names_in(const Section& section) {
  std::vector<std::string> names;
  for (const Section& child : section.subsections) names.push_back(child.name);
  for (const OptionInfo& info : section.options) names.push_back(info.name);
  for (const Choice& candidate : section.choices) names.push_back(candidate.name);
  return names;
}

std::string join_key(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

}  // namespace manyworlds::experiments
