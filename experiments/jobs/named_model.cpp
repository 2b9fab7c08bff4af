#include "experiments/jobs/named_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "experiments/model_keys/carried.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr const char* kModel = "model.";

/// Returns the letters and digits of a name behind its last slash, in lower case.
std::string letters_of(const std::string& name) {
  std::string letters;
  for (const char c : name.substr(name.rfind('/') + 1))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return letters;
}

/// Returns the catalog's name of a model with the same letters; the name itself if there is none.
std::string same_letters(const std::string& name, const Catalog& catalog) {
  const std::string letters = letters_of(name);
  for (const auto& [known, entry] : catalog.entries("models")) {
    if (letters_of(known) == letters) return known;
    for (const std::string& alias : entry.also_called)
      if (letters_of(alias) == letters) return known;
  }
  return name;
}

}  // namespace

std::vector<JobSetting> settings_of_model(const ModelName& model, const Catalog& catalog) {
  import::Node at;
  at.file = model.place.file;
  at.line = model.place.line;
  const bool is_path =
      model.name.find(".json") != std::string::npos || model.name.starts_with('.') || model.name.starts_with('/');
  const std::string name = is_path ? model.name : same_letters(model.name, catalog);
  const auto& [known, entry] = catalog.find_named("models", name, at);
  std::vector<JobSetting> settings{{"model.name", known, model.place}};
  for (const auto& [option, sourced] : entry.values)
    settings.push_back({kModel + option, import::value_text(sourced.value), model.place});
  if (entry.assumed_sequence > 0 && value_in(settings, "model.sequence").empty())
    settings.push_back({"model.sequence", std::to_string(entry.assumed_sequence), model.place});
  return settings;
}

void put_model(Job& job, const std::vector<JobSetting>& model) {
  // What the file says itself of what is carried comes before the model's own, argument by argument.
  const std::string own = value_in(job.settings, models::kCarriedKey), theirs = value_in(model, models::kCarriedKey);
  std::erase_if(job.settings, [](const JobSetting& one) { return one.key == models::kCarriedKey; });
  if (const std::string both = models::carried_over(theirs, own); !both.empty())
    job.settings.push_back({models::kCarriedKey, both, {}});
  std::erase_if(job.settings, [](const JobSetting& one) {
    return one.key.starts_with(kModel) && one.key != models::kCarriedKey && !one.place.file;
  });
  for (const JobSetting& one : model)
    if (one.key != models::kCarriedKey && value_in(job.settings, one.key).empty()) job.settings.push_back(one);
}

std::string value_in(const std::vector<JobSetting>& settings, const std::string& key) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const JobSetting& one) { return one.key == key; });
  return found == settings.end() ? "" : found->value;
}

}  // namespace manyworlds::experiments::jobs
