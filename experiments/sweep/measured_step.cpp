#include "experiments/sweep/measured_step.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {

using core::InputError;
using core::OptionInfo;
using import::Entry;
using import::Node;

MeasuredStep read_measured(const Node& node) {
  if (node.kind != Node::Kind::mapping)
    node.fail(fmt::format("'measured' must be a mapping, not {}", import::describe(node)));
  MeasuredStep result;
  OptionInfo time;
  time.kind = OptionInfo::Kind::real;
  time.minimum = 1e-9;
  time.maximum = 1e9;
  time.unit = "s";
  for (const Entry& entry : node.entries) {
    if (entry.key == "step_time_s")
      result.step_time_s = std::get<double>(import::read_value(entry.value, time, "measured.step_time_s"));
    else if (entry.key == "source")
      result.source = import::read_line(entry.value, "measured.source");
    else
      throw InputError(
          fmt::format("unknown key 'measured.{}'{}", entry.key, suggestion(entry.key, {"step_time_s", "source"})),
          *entry.value.file, entry.line);
  }
  if (result.step_time_s == 0 || result.source.empty()) node.fail("'measured' needs step_time_s and source");
  return result;
}

}  // namespace manyworlds::experiments
