// A model that a job only names: by an entry of the catalog, by its name on a hub, or by a config.json.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"

namespace manyworlds::experiments::jobs {

/// What a job calls its model, and where; `place` has no file if it was typed.
struct ModelName {
  std::string name;
  Place place;
};

/// Returns the settings of the model: of the catalog by name or alias, of a configuration file by its path (relative to
/// the file of `place`), or of an entry whose name or alias has the same letters and digits, as llama3.1_70B has those
/// of meta-llama/Llama-3.1-70B. Throws InputError at `place` if there is none.
std::vector<JobSetting> settings_of_model(const ModelName& model, const Catalog& catalog);

/// Replaces the model's settings of a job that nothing in its file says by those of the model that it names.
void put_model(Job& job, const std::vector<JobSetting>& model);

/// Returns the value of a setting; empty if it is not there.
std::string value_in(const std::vector<JobSetting>& settings, const std::string& key);

}  // namespace manyworlds::experiments::jobs
