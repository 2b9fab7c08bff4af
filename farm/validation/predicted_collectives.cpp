#include "farm/validation/predicted_collectives.hpp"

#include "core/base/error.hpp"
#include "experiments/catalog/calibration.hpp"
#include "farm/net/net_collective.hpp"
#include "farm/net/network_only.hpp"

namespace manyworlds::farm {

PredictedCollective predict(const experiments::measured::MeasuredCollective& row, experiments::GraphCache& graphs) {
  PredictedCollective prediction;
  prediction.id = row.id, prediction.system = row.system, prediction.op = row.op, prediction.gpu = row.gpu,
  prediction.family = row.family;
  prediction.ranks = row.ranks, prediction.nodes = row.nodes, prediction.bytes = row.bytes;
  prediction.measured_us = row.measured_us;
  prediction.excluded_from_family = row.excluded_from_family;
  prediction.reason = row.unsupported, prediction.detail = row.detail;
  if (!row.unsupported.empty()) return prediction;
  const experiments::ExperimentConfig config = experiments::config_of(row.settings);
  prediction.calibrated = experiments::describe_calibration(config.configuration.collectives);
  try {
    core::step::Configuration configuration = config.configuration;
    configuration.graph = graphs.get(config);
    const core::collective::Shape shape =
        row.tokens ? token_exchange_shape(configuration.collectives, communicator_of_all(configuration), *row.tokens)
                   : collective_of(configuration, row.op, "", row.bytes);
    prediction.algorithm = shape.text();
    prediction.predicted_us = core::seconds(run_collective(configuration, shape, false).end()) * 1e6;
  } catch (const core::InputError& error) {
    prediction.reason = "the network refuses it", prediction.detail = error.what();
  }
  return prediction;
}

}  // namespace manyworlds::farm
