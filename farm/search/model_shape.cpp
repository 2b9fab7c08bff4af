#include "farm/search/model_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/operators/key_heads.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/search/catalog_values.hpp"

namespace manyworlds::farm {
namespace {

using core::workload::Model;

/// Returns the values that are options of a model, without what a name or a file adds.
core::OptionSet values_of(const experiments::CatalogEntry& entry) {
  core::OptionSet values;
  for (const core::OptionInfo& info : core::workload::model_options().infos())
    if (const auto found = entry.values.find(info.name); found != entry.values.end())
      values[info.name] = found->second.value;
  return values;
}

core::OptionSet values_of(const SearchedJob& job) {
  core::OptionSet values;
  for (const core::OptionInfo& info : core::workload::model_options().infos())
    if (const auto found = job.model.find(info.name); found != job.model.end())
      values[info.name] = experiments::import::read_value(
          experiments::import::parse_yaml(found->second, "model." + info.name), info, info.name);
  return values;
}

/// Whether a size is that of heads of keys, of which twice as many ranks could share each.
bool shares_heads(const core::workload::Branch& branch, const core::workload::ShardedSize& size) {
  const auto* shares = dynamic_cast<const core::workload::SharesKeyHeads*>(branch.part.get());
  return shares != nullptr && size.is_of_keys &&
         shares->unshared_key_heads(*branch.model, core::workload::Strategy(), 2 * size.size).empty();
}

/// Adds what the layers of a model with these options divide over ranks.
void add_sizes(ModelShape& shape, const core::OptionSet& values) {
  Model model = core::workload::model_options().make(values);
  shape.layers = model.layers;
  shape.experts = model.experts;
  model.architecture = experiments::architecture_of(model);
  if (!model.architecture) {
    shape.tensor_sizes = {model.heads};
    shape.key_heads = {model.kv()};
    return;
  }
  shape.has_tables = core::workload::has_tables(model);
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches)
      for (const core::workload::ShardedSize& size : branch.part->sharded_sizes(*branch.model))
        if (size.axis == core::workload::ShardAxis::tensor)
          (shares_heads(branch, size) ? shape.key_heads : shape.tensor_sizes).push_back(size.size);
}

}  // namespace

bool ModelShape::divides_over(std::int64_t tensor_ranks) const {
  if (has_tables && tensor_ranks > 1) return false;
  return std::all_of(tensor_sizes.begin(), tensor_sizes.end(),
                     [&](std::int64_t size) { return size % tensor_ranks == 0; }) &&
         std::all_of(key_heads.begin(), key_heads.end(), [&](std::int64_t heads) {
           return heads % tensor_ranks == 0 || (heads > 0 && tensor_ranks % heads == 0);
         });
}

ModelShape model_shape_of(const SearchOptions& options, const experiments::Catalog& catalog) {
  ModelShape result;
  if (options.job) {
    result.name = options.job->name;
    add_sizes(result, values_of(*options.job));
    const auto sequence = options.job->model.find("sequence");
    result.sequence = sequence == options.job->model.end() ? 0 : std::stoll(sequence->second);
    return result;
  }
  const auto& [name, model] = catalog.find_named("models", options.model, source_node("--model"));
  result.name = result.like = name;
  if (!model.note.empty())  // of a file, which the document may be far away from
    result.like = nlohmann::json(std::filesystem::absolute(options.model).lexically_normal().string()).dump();
  add_sizes(result, values_of(model));
  result.has_sequence = options.sequence || model.assumed_sequence == 0;
  result.sequence = options.sequence.value_or(integer_value(model, "sequence", model.assumed_sequence));
  if (result.layers == 0) throw core::InputError(fmt::format("'layers' of {} is in no catalog", name), "--model");
  if (!model.values.contains("architecture") && integer_value(model, "heads", 0) == 0)
    throw core::InputError(fmt::format("'heads' of {} is in no catalog", name), "--model");
  if (result.sequence == 0)
    throw core::InputError(fmt::format("{} has no sequence of its own; give one", name), "--sequence");
  return result;
}

}  // namespace manyworlds::farm
