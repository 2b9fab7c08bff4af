#include "farm/results/document_columns.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

#include "core/workload/distributions/documents.hpp"

namespace manyworlds::farm {
namespace {

using core::workload::Documents;
using core::workload::DocumentSpread;
using io::Column;

/// What documents are in an experiment.
struct Packed {
  double pairs_share = 1, padding_share = 0;
  DocumentSpread spread;
  std::string text;
};

std::string text_of(const Documents& documents, const Packed& packed, std::int64_t replicas) {
  double count = 0;
  for (const auto& [length, times] : documents.lengths) count += static_cast<double>(times);
  const DocumentSpread& spread = packed.spread;
  return fmt::format(
      "{:.1f} documents a sample, {:.1f} % padding; attention to {:.1f} % of the pairs of whole samples, in every "
      "micro-batch the mean of {} packed ones. The step time leaves out that they differ: of drawn steps a replica has "
      "{:.2f} of the mean pairs in the median, {:.2f} in 95 %, {:.2f} at most, and the one of {} with most {:.2f}",
      count / static_cast<double>(documents.samples.size()), 100 * packed.padding_share, 100 * packed.pairs_share,
      documents.samples.size(), spread.median, spread.p95, spread.max, replicas, spread.slowest);
}

/// Returns what documents are in each experiment; those of sweeps repeat.
class PackedRows {
 public:
  const Packed& of(const Row& row) {
    const auto& model = row.configuration.model;
    if (!model.documents || row.configuration.programs) return whole_;
    const auto& strategy = row.configuration.strategy;
    const std::int64_t samples = strategy.global_batch / strategy.dp;
    const auto [known, is_new] = packed_.try_emplace({model.documents->key, strategy.dp, samples});
    if (!is_new) return known->second;
    const Documents& documents = *model.documents;
    Packed& packed = known->second;
    packed.pairs_share = documents.pairs_share();
    packed.padding_share = static_cast<double>(documents.padding) /
                           (static_cast<double>(documents.sequence) * static_cast<double>(documents.samples.size()));
    packed.spread = core::workload::document_spread(documents, strategy.dp, samples);
    packed.text = text_of(documents, packed, strategy.dp);
    return packed;
  }

 private:
  Packed whole_;
  std::map<std::tuple<core::sharing::Key, std::int64_t, std::int64_t>, Packed> packed_;
};

}  // namespace

void add_documents(std::vector<Column>& to, const Rows& rows) {
  PackedRows packed;
  std::vector<Packed> all;
  bool any = false;
  for (const Row& row : rows) {
    all.push_back(packed.of(row));
    any |= !all.back().text.empty();
  }
  if (!any) return;
  const auto add = [&](const char* name, const char* description, auto value) {
    std::vector<double> values;
    for (const Packed& one : all) values.push_back(value(one));
    to.push_back({name, "", description, std::move(values)});
  };
  add("document_pairs_share", "pairs of a query and a key inside documents over those of whole samples",
      [](const Packed& one) { return one.pairs_share; });
  add("document_padding_share", "share of tokens that is padding behind documents",
      [](const Packed& one) { return one.padding_share; });
  add("replica_pairs_median",
      "pairs that the samples of a data-parallel replica have in a step, over the mean, which is simulated: the median "
      "of drawn steps",
      [](const Packed& one) { return one.spread.median; });
  add("replica_pairs_p95", "the same, 95th percentile", [](const Packed& one) { return one.spread.p95; });
  add("replica_pairs_max", "the same, largest", [](const Packed& one) { return one.spread.max; });
  add("slowest_replica_pairs", "the same of the replica that has most, mean over drawn steps",
      [](const Packed& one) { return one.spread.slowest; });
  std::vector<std::string> texts;
  for (const Packed& one : all) texts.push_back(one.text);
  to.push_back(
      {"packed_documents", "", "documents of its samples, in words; empty if every sample is one", std::move(texts)});
}

}  // namespace manyworlds::farm
