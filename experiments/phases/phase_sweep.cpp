#include "experiments/phases/phase_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/phases/refusals.hpp"
#include "experiments/sweep/composed_document.hpp"

namespace manyworlds::experiments::phases {
namespace {

using import::Node;

Node root_of(const PhasesFile& file) {
  Node root;
  root.kind = Node::Kind::mapping;
  root.file = file.base.file, root.line = file.base.line;
  root.entries.push_back({"base", file.base.line, file.base});
  if (file.practice.kind != Node::Kind::null) root.entries.push_back({"assume", file.practice.line, file.practice});
  return root;
}

}  // namespace

PhaseSweep::PhaseSweep(const PhasesFile& file, const std::vector<std::string>& overrides, const Catalog& catalog)
    : file_(file), catalog_(catalog), root_(root_of(file)) {
  std::copy_if(overrides.begin(), overrides.end(), std::back_inserter(practice_),
               [](const std::string& given) { return given.starts_with("assume="); });
  sweep_.name = file.title;
  sweep_.objective = "step_time_s";
  sweep_.text = file.text;
  sweep_.overrides = overrides;
  sweep_.columns = {{"phase", core::OptionInfo::Kind::text, "", "phase of the iteration"},
                    {"part", core::OptionInfo::Kind::text, "", "what of the phase the experiment is"}};
}

std::uint32_t PhaseSweep::add(const Phase& phase, const std::string& part, const WrittenSettings& written,
                              const std::vector<DerivedSettings>& derived, const TextsByPath& texts) {
  ComposedDocument document{file_.text, root_, written.changes(), texts};
  for (const DerivedSettings& one : derived)
    if (!one.empty()) document.changes.push_back(one.node());
  Sweep one = compose_sweep(document, file_.file, practice_, catalog_, {.keep_refused = true});
  if (!one.refused.empty()) refuse(one.refused.front(), phase, written, derived);
  MANYWORLDS_CHECK(one.experiments.size() == 1, "{} experiments", one.experiments.size());
  Experiment& experiment = one.experiments.front();
  for (const auto& [path, text] : *one.inputs) inputs_->emplace(path, text);
  experiment.id = static_cast<std::uint32_t>(sweep_.experiments.size());
  experiment.axes = {phase.name, part};
  if (!one.assumed.empty() && assumed_.emplace(phase.name, one.assumed).second) {
    const std::string line = fmt::format("{}: {}", phase.name, one.assumed);
    sweep_.assumed += (sweep_.assumed.empty() ? "" : "; ") + line;
  }
  sweep_.experiments.push_back(std::move(experiment));
  return sweep_.experiments.back().id;
}

Sweep PhaseSweep::finish() {
  sweep_.inputs = inputs_;
  for (Experiment& one : sweep_.experiments) one.inputs = inputs_;
  return std::move(sweep_);
}

}  // namespace manyworlds::experiments::phases
