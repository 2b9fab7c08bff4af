// Documents that samples are packed of, as data: attention works inside each, so that its work follows from their
// lengths. Lengths are constant, lognormal or counted in a corpus. As many are drawn as fill a set of samples, one in
// each of as many equal parts of the distribution, so that their mean is the distribution's; a seed orders them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/sharing/key.hpp"

namespace manyworlds::core::workload {

/// cut: documents follow each other and are cut where a sample ends; the rest begins the next one (Megatron-LM,
/// GPTDataset with reset_attention_mask). first_fit: a document goes whole into the first sample that has room for it,
/// and is cut to a sample if it is longer; what stays free is padding (NeMo, first_fit_shuffle).
enum class Packing : std::uint8_t { cut, first_fit };

struct Documents {
  /// By sample, the tokens of its documents in order. They sum to the sample's: padding is a document of its own, as
  /// the last of NeMo's cu_seqlens ends with the sample.
  std::vector<std::vector<std::int64_t>> samples;
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;  // distinct ones, ascending, and how often each occurs
  std::int64_t sequence = 0;                                   // tokens of a sample
  std::int64_t padding = 0;                                    // tokens of all samples
  sharing::Key key;                                            // covers the samples

  /// Returns the share of the causal pairs of whole samples that documents leave: the sum of squares of their lengths
  /// over that of the samples.
  double pairs_share() const;
};

/// Returns z of which a normal variable is below with probability `share`, in (0, 1); within 1.2e-9 of itself
/// (Acklam 2003, An algorithm for computing the inverse normal cumulative distribution function).
double normal_quantile(double share);

/// How many documents to draw: those of 1,024 samples, but fewer samples, at least 16, if these have over 16,384; at
/// least 64.
std::int64_t documents_to_draw(double mean_length, std::int64_t sequence);

/// Returns `count` lengths, none below 1, in an order drawn from `seed`: of a lognormal distribution with this mean
/// and this standard deviation of the logarithm; or of a table of (length, how often).
std::vector<std::int64_t> lognormal_lengths(double mean, double sigma, std::int64_t seed, std::int64_t count);
std::vector<std::int64_t> tabled_lengths(const std::vector<std::pair<std::int64_t, std::int64_t>>& table,
                                         std::int64_t seed, std::int64_t count);
/// Returns the mean length in such a table.
double mean_length(const std::vector<std::pair<std::int64_t, std::int64_t>>& table);

/// Packs documents into samples of `sequence` tokens; what does not fill the last sample of Packing::cut is left out.
/// Returns null if every sample is one document.
std::shared_ptr<const Documents> pack_documents(const std::vector<std::int64_t>& lengths, std::int64_t sequence,
                                                Packing packing);

/// How the attention work of data-parallel ranks differs if each draws samples of its own, as shares of the mean.
struct DocumentSpread {
  double median = 1, p95 = 1, max = 1;  // of the pairs of one replica in a step
  double slowest = 1;                   // of the replica that has most, mean over steps
};
/// Draws the `samples` of each of `replicas` in 64 steps, with repetition, from the packed ones.
DocumentSpread document_spread(const Documents& documents, std::int64_t replicas, std::int64_t samples);

}  // namespace manyworlds::core::workload
