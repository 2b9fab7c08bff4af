#include "farm/explain/variants.hpp"

#include <memory>
#include <utility>

#include "experiments/key_contents/programs.hpp"

namespace manyworlds::farm {

experiments::Sweep variants_of(const experiments::Experiment& experiment, const std::string& name,
                               const VariantColumn& column, const std::string& description) {
  experiments::Sweep sweep;
  sweep.name = name;
  sweep.objective = "step_time_s";
  sweep.text = description;
  sweep.columns = {{column.name, core::OptionInfo::Kind::text, "", column.description}};
  sweep.inputs = experiment.inputs ? experiment.inputs : std::make_shared<const experiments::Inputs>();
  add_variant(sweep, experiment, "");
  return sweep;
}

std::size_t add_variant(experiments::Sweep& sweep, experiments::Experiment experiment, const std::string& label) {
  const std::size_t index = sweep.experiments.size();
  experiment.id = static_cast<std::uint32_t>(index);
  experiment.axes = {label};
  sweep.experiments.push_back(std::move(experiment));
  return index;
}

}  // namespace manyworlds::farm
