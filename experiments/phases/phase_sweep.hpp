// The experiments of phases, collected one by one into a sweep.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/phase_files/phase_settings.hpp"
#include "experiments/phase_files/phases_file.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments::phases {

/// A text that stands for a file of this path, which is not on the disk.
using TextsByPath = std::map<std::string, std::string>;

class PhaseSweep {
 public:
  /// `file` and `catalog` must outlive this; `overrides` are those of --set.
  PhaseSweep(const PhasesFile& file, const std::vector<std::string>& overrides, const Catalog& catalog);

  /// Adds an experiment, a part of a phase, of what is written and what is derived over that; returns its id. Throws
  /// InputError as refuse() and compose_sweep() do.
  std::uint32_t add(const Phase& phase, const std::string& part, const WrittenSettings& written,
                    const std::vector<DerivedSettings>& derived, const TextsByPath& texts = {});
  /// Keeps a text with the sweep that no experiment names.
  void keep(const std::string& path, std::string text) { inputs_->emplace(path, std::move(text)); }

  const Experiment& experiment(std::uint32_t id) const { return sweep_.experiments.at(id); }
  bool empty() const { return sweep_.experiments.empty(); }
  /// Returns the sweep. No other function may be called after it.
  Sweep finish();

 private:
  const PhasesFile& file_;
  const Catalog& catalog_;
  import::Node root_;                  // what a file of a sweep would have
  std::vector<std::string> practice_;  // `assume` of --set: all else of it is among the written settings
  Sweep sweep_;
  std::map<std::string, std::string> assumed_;  // by phase
  std::shared_ptr<Inputs> inputs_ = std::make_shared<Inputs>();
};

}  // namespace manyworlds::experiments::phases
