// Rows of `manyworlds list`.
#include "core/collective/algorithms/registry.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/sweep/schema.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;
using import::value_text;

/// Returns a catalog entry as a row with details such as "312 TFLOP/s (known: NVIDIA A100 datasheet)" or "not
/// published".
ListEntry from_catalog(const std::string& name, const CatalogEntry& entry, const Section& section) {
  ListEntry row{name, entry.help, {}};
  if (!entry.also_called.empty())
    row.details.emplace_back("also called", fmt::format("{}", fmt::join(entry.also_called, ", ")));
  if (const auto gpu = entry.values.find("gpu"); gpu != entry.values.end())
    row.details.emplace_back("gpu", value_text(gpu->second.value));
  for (const OptionInfo& info : section.options) {
    const std::string unit = info.unit.empty() ? "" : " " + info.unit;
    const auto found = entry.values.find(info.name);
    if (found != entry.values.end())
      row.details.emplace_back(info.name,
                               fmt::format("{}{} ({}: {})", figure_text(found->second.value, found->second.range), unit,
                                           found->second.certainty, found->second.source));
    else if (!has_default(info))
      row.details.emplace_back(info.name, "not published");
  }
  return row;
}

/// Returns what each stack sets beside the defaults of options, and what its recipe sets in the strategy.
std::vector<ListEntry> stacks(const Catalog& catalog) {
  std::vector<ListEntry> rows;
  for (const auto& [name, entry] : catalog.entries("stacks")) {
    ListEntry row{name, entry.help, {}};
    for (const auto& [key, sourced] : entry.values) row.details.emplace_back(key, value_text(sourced.value));
    constexpr std::string_view kSeveral = "several_stages.";
    for (const auto& [key, sourced] : entry.recipe) {
      const bool several = key.starts_with(kSeveral);
      row.details.emplace_back(
          several ? key.substr(kSeveral.size()) : "strategy." + key,
          value_text(sourced.value) + (several ? ", with several stages on a rank" : ", unless set"));
    }
    row.details.emplace_back(
        "schedules", entry.schedules.empty() ? "not known" : fmt::format("{}", fmt::join(entry.schedules, ", ")));
    row.details.emplace_back("source", entry.values.empty() ? "" : entry.values.begin()->second.source);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Returns the measured constants of each communication library, and the versions and GPUs that they are of.
std::vector<ListEntry> libraries(const Catalog& catalog) {
  std::vector<ListEntry> rows;
  for (const auto& [name, entry] : catalog.entries("libraries")) {
    ListEntry row{name, entry.help, {}};
    row.details.emplace_back("versions", fmt::format("{}", fmt::join(entry.versions, ", ")));
    row.details.emplace_back("gpus", fmt::format("{}", fmt::join(entry.gpus, ", ")));
    for (const auto& [key, sourced] : entry.values)
      row.details.emplace_back(
          key, fmt::format("{} ({}: {})", value_text(sourced.value), sourced.certainty, sourced.source));
    rows.push_back(std::move(row));
  }
  return rows;
}

ListEntry with_options(const std::string& name, const std::string& help, const std::vector<OptionInfo>& options) {
  ListEntry row{name, help, {}};
  for (const OptionInfo& info : options) {
    const std::string otherwise = has_default(info) ? "default " + value_text(info.default_value) : "must be given";
    row.details.emplace_back(info.name, fmt::format("{}; {}, {}", info.help, import::expected_text(info), otherwise));
  }
  return row;
}

std::vector<ListEntry> components(const Section& section) {
  std::vector<ListEntry> rows;
  for (const Choice& one : section.choices) rows.push_back(with_options(one.name, one.help, one.options));
  return rows;
}

/// Returns the types of parts that an architecture may list, and the options that all of them have.
std::vector<ListEntry> parts() {
  std::vector<ListEntry> rows;
  for (const core::workload::PartType& type : core::workload::part_types())
    rows.push_back(with_options(type.name, type.help, type.options));
  std::vector<OptionInfo> of_all = core::workload::branch_options().infos();
  rows.push_back(
      with_options("(every part)", "how it stands on the residual stream; and the options of model, below", of_all));
  std::vector<std::string> names;
  for (const OptionInfo& info : part_model_options()) names.push_back(info.name);
  rows.back().details.emplace_back("of model", fmt::format("{}", fmt::join(names, ", ")));
  return rows;
}

std::vector<ListEntry> pipeline_schedules() {
  using core::workload::ScheduleType;
  std::vector<ListEntry> rows;
  for (const ScheduleType& type : core::workload::schedules()) {
    const std::string chunks = type.chunks == ScheduleType::kTwoOrMore   ? "2 or more"
                               : type.chunks == ScheduleType::kAsWritten ? "as in the file"
                                                                         : std::to_string(type.chunks);
    rows.push_back({type.name, type.help, {{"virtual_stages", chunks}}});
  }
  return rows;
}

std::vector<ListEntry> validity_rules() {
  std::vector<ListEntry> rows;
  for (const Rule& rule : rules())
    rows.push_back({rule.name, rule.reason, {{"key", rule.key}, {"source", rule.source}}});
  return rows;
}

std::vector<ListEntry> algorithms() {
  std::vector<ListEntry> rows;
  for (const core::collective::AlgorithmInfo& info : core::collective::algorithms()) {
    std::vector<std::string> kinds;
    for (const core::collective::Kind kind : info.kinds) kinds.emplace_back(core::collective::name_of(kind));
    rows.push_back({info.name, info.help, {{"of", fmt::format("{}", fmt::join(kinds, ", "))}}});
    if (info.multi_channel)
      rows.back().details.emplace_back(
          "channels",
          "side by side; by default as many as a node has NICs among members, or as share every link of a full mesh");
  }
  return rows;
}

/// A column of a kind's table: the option, its title, and the number of decimals shown.
struct TableColumn {
  const char *option, *title;
  int decimals = 0;
};

const std::vector<TableColumn>& table_columns(const std::string& kind) {
  static const std::map<std::string, std::vector<TableColumn>> all{
      {"gpus",
       {{"matrix_tflops", "bf16 TFLOP/s", 1},
        {"memory_gib", "memory, GiB", 1},
        {"memory_gb_per_s", "memory, GB/s"},
        {"scale_up_gb_per_s", "scale-up, GB/s"},
        {"scale_up_domain", "scale-up domain"},
        {"precisions", "precisions"}}},
      {"models",
       {{"layers", "layers"},
        {"hidden", "hidden"},
        {"heads", "heads"},
        {"kv_heads", "KV heads"},
        {"experts", "experts"},
        {"experts_per_token", "per token"},
        {"sequence", "sequence"}}},
      {"clusters",
       {{"gpu", "GPU"},
        {"nodes", "nodes"},
        {"gpus_per_node", "GPUs a node"},
        {"nic_gbps", "NIC, Gb/s"},
        {"network", "network"}}},
      {"stacks", {{"attention", "attention"}, {"layers", "kernels"}, {"cuda_graphs", "CUDA graphs"}}}};
  static const std::vector<TableColumn> none;
  const auto found = all.find(kind);
  return found == all.end() ? none : found->second;
}

/// Returns the entry's value, or else the option's default; "-" if there is neither.
std::string cell(const CatalogEntry& entry, const Section& section, const TableColumn& column) {
  const auto sourced = entry.values.find(column.option);
  const OptionInfo* info = find_option(section.options, column.option);
  if (sourced == entry.values.end() && (info == nullptr || !has_default(*info))) return "-";
  const core::OptionValue& value = sourced == entry.values.end() ? info->default_value : sourced->second.value;
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.{}f}", *real, column.decimals);
  return value_text(value);
}

/// Returns all parameters of a model and those active per token, in billions, such as "70.6".
std::pair<std::string, std::string> parameters_of(const CatalogEntry& entry) {
  core::OptionSet values;
  for (const auto& [key, sourced] : entry.values)
    if (key != "carried") values.insert({key, sourced.value});  // no parameter depends on it
  auto model = core::workload::model_options().make(values);
  model.architecture = architecture_of(model);
  const auto billions = [](std::int64_t count) { return fmt::format("{:.4g}", static_cast<double>(count) / 1e9); };
  return {billions(core::workload::model_parameters(model)), billions(core::workload::active_parameters(model))};
}

}  // namespace

std::vector<std::vector<std::string>> list_table(const std::string& kind, const Catalog& catalog) {
  const auto& columns = table_columns(kind);
  if (columns.empty()) return {};
  const bool models = kind == "models", stacks = kind == "stacks";
  std::vector<std::vector<std::string>> lines{{"name"}};
  if (models) lines[0].insert(lines[0].end(), {"parameters, B", "active, B"});
  for (const TableColumn& column : columns) lines[0].emplace_back(column.title);
  if (stacks) lines[0].insert(lines[0].end(), {"schedules", "what it is"});
  for (const auto& [name, entry] : catalog.entries(kind)) {
    std::vector<std::string> line{name};
    if (models) {
      auto [all, active] = parameters_of(entry);
      line.push_back(std::move(all));
      line.push_back(std::move(active));
    }
    for (const TableColumn& column : columns) line.push_back(cell(entry, catalog_section(kind), column));
    if (stacks) {
      line.push_back(entry.schedules.empty() ? "-" : fmt::format("{}", fmt::join(entry.schedules, " ")));
      line.push_back(entry.help);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

const std::vector<std::string>& listings() {
  static const std::vector<std::string> all{"gpus",      "models",     "parts",       "clusters",  "stacks",
                                            "libraries", "topologies", "collectives", "schedules", "transports",
                                            "routings",  "documents",  "rules"};
  return all;
}

std::vector<ListEntry> list(const std::string& kind, const Catalog& catalog) {
  if (kind == "topologies") return components(*find_section(config_schema().subsections, "topology"));
  if (kind == "routings") return components(*find_section(config_schema().subsections, "routing"));
  if (kind == "documents") return components(*find_section(config_schema().subsections, "documents"));
  if (kind == "transports") return components(*find_section(config_schema().subsections, "transport"));
  if (kind == "collectives") return algorithms();
  if (kind == "schedules") return pipeline_schedules();
  if (kind == "parts") return parts();
  if (kind == "rules") return validity_rules();
  if (kind == "stacks") return stacks(catalog);
  if (kind == "libraries") return libraries(catalog);
  if (kind != "gpus" && kind != "models" && kind != "clusters")
    throw core::InputError(fmt::format("cannot list '{}'{}", kind, suggestion(kind, listings())));
  std::vector<ListEntry> rows;
  for (const auto& [name, entry] : catalog.entries(kind))
    rows.push_back(from_catalog(name, entry, catalog_section(kind)));
  return rows;
}

}  // namespace manyworlds::experiments
