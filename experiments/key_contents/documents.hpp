// The documents that an experiment's samples are packed of: one each, of one length, lognormal, or of a corpus.
#pragma once

#include <memory>

#include "core/workload/distributions/documents.hpp"
#include "core/workload/model/model.hpp"
#include "experiments/key_contents/programs.hpp"
#include "experiments/keys/section.hpp"

namespace manyworlds::experiments {

/// Returns section `documents` of the config schema.
Section documents_section();

/// Returns the documents that the settings choose for samples of `model`; null if every sample is one. `inputs` holds
/// the text of a table of lengths; if it is null, documents of a table are left out.
std::shared_ptr<const core::workload::Documents> documents_of(const Settings& settings, const Inputs* inputs,
                                                              const core::workload::Model& model);

}  // namespace manyworlds::experiments
