#include "experiments/measured_collectives/collectives.hpp"

#include <algorithm>
#include <cmath>

#include "core/collective/algorithms/registry.hpp"
#include "core/workload/parts/routed_experts.hpp"
#include "experiments/catalog/calibration.hpp"
#include "experiments/measured/term_table.hpp"
#include "experiments/measured_collectives/published_collectives.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/text/unsupported_row.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::collective::Kind;
using import::CsvRow;
using import::read_supported;
using import::UnsupportedRow;

// Columns that every table of collectives has.
constexpr const char* kRequiredColumns[] = {"id", "gpu", "op", "ranks", "nodes", "bytes", "time_us"};
constexpr Kind kKinds[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast};

/// NIC rate if neither the row nor the catalog has one.
constexpr double kDefaultNicGbps = 400;
constexpr std::int64_t kMaxRanks = 1 << 14;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMaxTokens = 1 << 24, kMaxExperts = 1 << 16, kMaxRow = 1 << 24, kMaxUnits = 1'024;

/// Returns the algorithm that a row names alone: not one that it says was disabled, nor one of several by size.
std::string algorithm_in(std::string_view printed_text) {
  const std::string text = normalized_text(printed_text.substr(0, printed_text.find('(')));
  std::string found;
  for (const auto& [word, name] : {std::pair{"ring", "ring"}, {"nvls", "in_switch"}, {"tree", "double_tree"}})
    if (text.find(word) != std::string::npos) found = found.empty() ? name : "auto";
  return found.empty() ? "auto" : found;
}

/// Returns the option's value for a version of the library as printed, such as 2.27.3: the next older one.
std::string library_version(const std::string& printed) {
  const auto minor_of = [](const std::string& version) {
    const std::size_t dot = version.find('.');
    const std::string digits =
        dot == std::string::npos ? "" : version.substr(dot + 1, version.find('.', dot + 1) - dot - 1);
    const bool number = !digits.empty() && digits.size() < 6 &&
                        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return number ? std::stoi(digits) : -1;
  };
  const int minor = minor_of(printed);
  if (minor < 0 || !printed.starts_with("2.")) throw UnsupportedRow{"its library's version is not known", printed};
  std::string found = core::collective::version_names().front();
  for (const std::string& name : core::collective::version_names())
    if (minor_of(name) <= minor) found = name;
  return found;
}

class RowReader {
 public:
  RowReader(const CsvRow& row, const TermTable& terms, const Catalog& catalog)
      : row_(row), terms_(terms), catalog_(catalog), assigner_(catalog, settings_, nullptr) {}

  MeasuredCollective read() {
    result_.id = row_.text("id");
    result_.system = row_.text("system");
    result_.source = row_.text("source");
    result_.op = row_.text("op");
    result_.family = result_.system;  // for rows that are left out before their family is known
    result_.line = row_.line();
    read_supported(result_, [this] {
      read_operation();
      read_machines();
      result_.family = family();
      result_.settings = std::move(settings_);
    });
    return std::move(result_);
  }

 private:
  std::string text(const char* column) const { return std::string(row_.text(column)); }

  std::int64_t required_integer(const char* column, std::int64_t minimum, std::int64_t maximum) const {
    const auto value = row_.integer(column);
    if (!value) throw UnsupportedRow{fmt::format("{} is not printed", column), ""};
    if (*value < minimum || *value > maximum)
      throw UnsupportedRow{fmt::format("{} is not from {} to {}", column, minimum, maximum), text(column)};
    return *value;
  }

  void set(const std::string& key, const std::string& value) {
    import::Node given;
    given.kind = import::Node::Kind::scalar;
    given.text = value;
    given.file = std::make_shared<const std::string>(row_.header().file);
    given.line = row_.line();
    assigner_.assign(find_key(key, given), given);
  }

  void read_operation() {
    result_.ranks = required_integer("ranks", 2, kMaxRanks);
    result_.nodes = required_integer("nodes", 1, kMaxRanks);
    if (row_.given("kernels"))
      read_exchange();
    else
      read_collective();
    read_time();
    result_.family = family();
    reject_renamed_columns(row_);
    result_.excluded_from_family = row_.integer("included") == 0;
    result_.exclusion_reason = text("exclusion_reason");
  }

  void read_collective() {
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](Kind one) { return result_.op == core::collective::name_of(one); });
    if (kind == std::end(kKinds)) throw UnsupportedRow{"its operation is not simulated", result_.op};
    result_.kind = *kind;
    result_.algorithm = algorithm_in(row_.text("algorithm"));
    if (result_.algorithm != "auto" && !supports(result_.algorithm)) result_.algorithm = "auto";
    result_.bytes = required_integer("bytes", 1, kMaxBytes);
  }

  /// An exchange of experts' tokens: which kernels, and how many ranks a token reaches, of which a table has the
  /// numbers of experts and choices. A router may limit the nodes to which a token goes (`node_limit`).
  void read_exchange() {
    const bool combine = result_.op == "moe_combine";
    const auto& kernels = core::collective::token_kernel_names();
    const auto named = std::find(kernels.begin(), kernels.end(), text("kernels"));
    if ((!combine && result_.op != "moe_dispatch") || named == kernels.end())
      throw UnsupportedRow{"its operation is not simulated", fmt::format("{} {}", text("kernels"), result_.op)};
    core::collective::TokenExchange& tokens = result_.tokens.emplace();
    tokens.kernels = static_cast<core::collective::TokenKernels>(named - kernels.begin());
    tokens.combine = combine;
    result_.kind = Kind::all_to_all;
    result_.algorithm = "hybrid_ep";
    tokens.row_bytes = required_integer("row_bytes", 1, kMaxRow);
    const std::int64_t experts = required_integer("experts", 1, kMaxExperts),
                       chosen = required_integer("top_k", 1, experts),
                       reachable = std::min(result_.nodes, row_.integer("node_limit").value_or(result_.nodes));
    const bool low_latency = tokens.kernels == core::collective::TokenKernels::low_latency;
    if (reachable < 1 || (experts % result_.ranks != 0 && !low_latency))
      throw UnsupportedRow{"its ranks do not have equally many experts",
                           fmt::format("{} on {}", experts, result_.ranks)};
    tokens.experts_of_rank = static_cast<double>(experts) / static_cast<double>(result_.ranks);
    const std::int64_t among = experts / result_.nodes * reachable;
    tokens.nodes_reached = core::workload::mean_parts_reached(among, chosen, reachable);
    tokens.ranks_reached = core::workload::mean_parts_reached(among, chosen, result_.ranks / result_.nodes * reachable);
    if (low_latency) tokens.ranks_reached = static_cast<double>(chosen);
    if (text("routing") == "balanced") tokens.ranks_reached = static_cast<double>(std::min(chosen, result_.ranks));
    // Low-latency kernels run on every compute unit that an expert keeps busy.
    tokens.units = static_cast<double>(row_.given("units") ? required_integer("units", 1, kMaxUnits) : experts);
    tokens.bytes = core::round_half_up(static_cast<double>(required_integer("tokens", 1, kMaxTokens)) *
                                       tokens.ranks_reached * static_cast<double>(tokens.row_bytes));
    result_.bytes = tokens.bytes;
  }

  /// DeepEP prints bytes per time instead of times: those to all ranks in a node, those to all nodes otherwise.
  std::optional<double> us_of_bandwidth() const {
    const auto gb_per_s = row_.real("busbw_GBps");
    if (!result_.tokens || !gb_per_s || !(*gb_per_s > 0)) return std::nullopt;
    const core::collective::TokenExchange& tokens = *result_.tokens;
    const double copies = result_.nodes > 1 ? tokens.nodes_reached : tokens.ranks_reached;
    return tokens.tokens() * copies * static_cast<double>(tokens.row_bytes) / *gb_per_s * 1e-3;
  }

  void read_time() {
    const auto measured = row_.given("time_us") ? row_.real("time_us") : us_of_bandwidth();
    if (!measured) throw UnsupportedRow{"no time is printed", ""};
    if (!(*measured > 0) || !std::isfinite(*measured)) throw UnsupportedRow{"time_us is not above 0", text("time_us")};
    result_.measured_us = *measured;
  }

  bool supports(const std::string& algorithm) const {
    const auto& all = core::collective::algorithms();
    return std::any_of(all.begin(), all.end(), [&](const auto& info) {
      return info.name == algorithm && core::collective::supports(info.algorithm, result_.kind);
    });
  }

  void read_machines() {
    result_.gpu =
        catalog_.entries("gpus").count(text("gpu")) ? text("gpu") : terms_.meaning("gpu", text("gpu")).value_or("");
    if (result_.gpu.empty()) throw UnsupportedRow{"its GPU is not in the catalog", text("gpu")};
    if (result_.ranks % result_.nodes != 0)
      throw UnsupportedRow{"ranks is no multiple of nodes", fmt::format("{} on {}", result_.ranks, result_.nodes)};
    assigner_.defaults();
    set("cluster.gpu", result_.gpu);
    result_.nodes = result_.ranks / gpus_of_node();
    set("cluster.nodes", std::to_string(result_.nodes));
    set("cluster.gpus_per_node", std::to_string(result_.ranks / result_.nodes));
    if (row_.given("intra_bw_GBps")) set("cluster.gpu.scale_up_gb_per_s", text("intra_bw_GBps"));
    set_nic();
    // Machines are configured as for measured steps, so that conclusions apply to both.
    set("topology", "rail_optimized");
    set("transport", "static_window");
    set("transport.payload_bytes", "16384");
    set("collectives.protocol", "calibrated");
    if (row_.given("version")) set("collectives.version", library_version(text("version")));
    if (row_.integer("ll128_between_nodes") == 0) set("collectives.ll128_between_nodes", "false");
    set(fmt::format("collectives.{}", core::collective::name_of(result_.kind)), result_.algorithm);
    if (result_.tokens) set_token_figures();
    if (const std::string missing = borrow_calibration(settings_, catalog_); !missing.empty())
      throw UnsupportedRow{"no GPU of the catalog is calibrated", missing};
    if (result_.algorithm == "in_switch" &&
        config_of(settings_).configuration.collectives.calibration.reduces_in_switches() == false)
      throw UnsupportedRow{"its switches are not known to reduce", result_.gpu};
  }

  void set_token_figures() {
    borrow_token_figures(settings_, catalog_, result_.tokens->kernels, result_.nodes > 1);
    const auto units = settings_.find("cluster.gpu.compute_units");
    if (units == settings_.end()) throw UnsupportedRow{"the compute units of its GPU are not known", result_.gpu};
    const auto all = static_cast<double>(std::get<std::int64_t>(units->second));
    result_.tokens->units = std::min(result_.tokens->units, all);
  }

  /// Returns the GPUs per node. A scale-up domain may join several servers: a rack of NVL72 is one node, whose size
  /// must divide the number of ranks.
  std::int64_t gpus_of_node() const {
    const std::int64_t domain = std::get<std::int64_t>(settings_.at("cluster.gpu.scale_up_domain"));
    std::int64_t members = result_.ranks / result_.nodes;
    if (domain > 16)
      for (members = std::min(result_.ranks, domain); result_.ranks % members != 0;) --members;
    return members;
  }

  std::string family() const {
    if (result_.tokens)
      return text(row_.given("family") ? "family" : "system") + (result_.nodes > 1 ? ", over nodes" : ", in a node");
    const char* size = result_.bytes < kLargeBytes ? ", below 1 MiB" : ", from 1 MiB";
    if (row_.given("family")) return text("family") + size;
    std::string name = result_.gpu.substr(0, result_.gpu.find('_'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    name += result_.nodes > 1 ? " across nodes" : " in a node";
    return name + size;
  }

  void set_nic() {
    double gbps = kDefaultNicGbps;
    if (const auto printed = row_.real("inter_bw_GBps_per_gpu"); printed && *printed > 0) {
      gbps = *printed * 8;
    } else if (result_.nodes > 1) {
      result_.assumed.emplace_back("inter_bw_GBps_per_gpu");
      for (const auto& [name, cluster] : catalog_.entries("clusters")) {
        const auto gpu = cluster.values.find("gpu"), nic = cluster.values.find("nic_gbps");
        if (gpu == cluster.values.end() || nic == cluster.values.end()) continue;
        if (std::get<std::string>(gpu->second.value) == result_.gpu) gbps = std::get<double>(nic->second.value);
      }
    }
    set("cluster.nic_gbps", fmt::format("{}", gbps));
  }

  const CsvRow& row_;
  const TermTable& terms_;
  const Catalog& catalog_;
  Settings settings_;
  Assigner assigner_;
  MeasuredCollective result_;
};

}  // namespace

bool is_collectives_table(const import::CsvHeader& header) {
  return is_published_collectives(header) || std::all_of(std::begin(kRequiredColumns), std::end(kRequiredColumns),
                                                         [&](const char* name) { return header.has(name); });
}

std::vector<MeasuredCollective> read_collectives(const import::CsvTable& table, const Catalog& catalog) {
  if (is_published_collectives(*table.header)) return read_collectives(as_collectives(table), catalog);
  for (const char* name : kRequiredColumns)
    if (!table.header->has(name))
      throw core::InputError(fmt::format("a table of collectives needs the column '{}'", name), table.header->file, 1);
  const TermTable terms;
  std::vector<MeasuredCollective> all;
  for (const CsvRow& row : table.rows) all.push_back(RowReader(row, terms, catalog).read());
  return all;
}

}  // namespace manyworlds::experiments::measured
