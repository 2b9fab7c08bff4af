#include "experiments/settings/teacher.hpp"

#include <nlohmann/json.hpp>

#include "experiments/key_contents/architecture.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using import::Node;

/// Returns the values of an entry of the catalog and those that replace them.
std::string text_of(const TeacherSpec& spec, const Catalog::Entries::value_type& entry) {
  nlohmann::ordered_json text{{"name", entry.first}};
  for (const auto& [key, sourced] : entry.second.values)
    if (is_teacher_option(key)) text[key] = to_json(sourced.value);
  for (const auto* given : {&spec.values, &spec.own})
    for (const auto& [key, value] : *given) text[key] = to_json(value);
  return text.dump();
}

}  // namespace

std::string teacher_text(const Catalog& catalog, const std::string& value, const Node& at) {
  if (value.empty() || value == "none") return "";
  TeacherSpec spec;
  if (at.kind == Node::Kind::mapping)
    spec = read_teacher(at);
  else if (value.starts_with('{'))
    spec = read_teacher(import::parse_yaml(value, "model.teacher"));
  else
    spec.like = value;
  return spec.like.empty() ? value : text_of(spec, catalog.find_named("models", spec.like, at));
}

}  // namespace manyworlds::experiments
