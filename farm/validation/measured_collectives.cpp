#include "farm/validation/measured_collectives.hpp"

#include "core/base/error.hpp"
#include "experiments/settings/calibration.hpp"
#include "farm/net/net_collective.hpp"
#include "farm/net/network_only.hpp"

namespace manyworlds::farm {

PredictedCollective predict(const experiments::measured::Collective& row, experiments::GraphCache& graphs) {
  PredictedCollective made;
  made.id = row.id, made.system = row.system, made.op = row.op, made.gpu = row.gpu, made.family = row.family;
  made.ranks = row.ranks, made.nodes = row.nodes, made.bytes = row.bytes;
  made.measured_us = row.measured_us;
  made.apart = row.apart;
  made.reason = row.left_out, made.detail = row.detail;
  if (!row.left_out.empty()) return made;
  const experiments::World world = experiments::world_of(row.settings);
  made.calibrated = experiments::describe_calibration(world.configuration.collectives);
  try {
    core::step::Configuration configuration = world.configuration;
    configuration.graph = graphs.get(world);
    const core::collective::Shape shape = collective_of(configuration, row.op, "", row.bytes);
    made.did = shape.text();
    made.predicted_us = core::seconds(run_collective(configuration, shape, false).end()) * 1e6;
  } catch (const core::InputError& error) {
    made.reason = "the network refuses it", made.detail = error.what();
  }
  return made;
}

}  // namespace manyworlds::farm
