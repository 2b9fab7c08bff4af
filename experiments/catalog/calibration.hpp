// NCCL's constants of a GPU, from the catalog's entry for its version; for a GPU on which none were measured they are
// borrowed.
#pragma once

#include "core/collective/library/token_exchange.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// If protocol `calibrated` is chosen, fills in the library constants that the settings do not give: those that were
/// measured with this version on this GPU; otherwise on the same chip, or on the GPU whose link rate is nearest, with
/// rates scaled by the ratio of link rates and the lender's name stored in cluster.gpu.library_from. Returns the key of
/// library_launch_us if no GPU is calibrated for the version and none is given; otherwise nothing.
/// Figures of DeepEP's kernels are filled in if the stack's dispatcher is deepep: from the GPU that they were measured
/// on, the same chip or the nearest link rate, unscaled; cluster.gpu.library_tokens_deepep_from has the lender's name.
std::string borrow_calibration(Settings& settings, const Catalog& catalog);

/// Borrows for one point of a sweep after the other. A point whose GPU and library are those of the point before it
/// gets the same constants without a look at the catalog.
class CalibrationBorrower {
 public:
  /// As borrow_calibration().
  std::string borrow(Settings& settings, const Catalog& catalog);

 private:
  Settings before_, after_;
  bool is_known_ = false;
};

/// Fills in the figures of kernels that exchange tokens in the same way, inside a node and, if wanted, over nodes.
void borrow_token_figures(Settings& settings, const Catalog& catalog, core::collective::TokenKernels kernels,
                          bool over_nodes);

/// Returns "no", "yes", or the GPU whose constants were borrowed, for tables and messages.
std::string describe_calibration(const core::collective::Library& library);

}  // namespace manyworlds::experiments
