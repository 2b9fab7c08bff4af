#include "experiments/measured/collectives.hpp"

#include <algorithm>
#include <cmath>

#include "core/collective/algorithms/registry.hpp"
#include "experiments/measured/words.hpp"
#include "experiments/settings/calibration.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::collective::Kind;
using import::CsvRow;

/// Ends the reading of one row.
struct LeftOut {
  std::string reason, detail;
};

// Columns without which a table is none of collectives.
constexpr const char* kNeeded[] = {"id", "gpu", "op", "ranks", "nodes", "bytes", "time_us"};
constexpr Kind kKinds[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast};

/// NICs where no row names any.
constexpr double kUsualNicGbps = 400;
constexpr std::int64_t kMostRanks = 1 << 14;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

/// The algorithm that a row names, by itself: not what it says was off, nor one of several by size.
std::string algorithm_in(std::string_view said) {
  const std::string text = squeezed(said.substr(0, said.find('(')));
  std::string found;
  for (const auto& [word, name] : {std::pair{"ring", "ring"}, {"nvls", "in_switch"}, {"tree", "double_tree"}})
    if (text.find(word) != std::string::npos) found = found.empty() ? name : "auto";
  return found.empty() ? "auto" : found;
}

class RowReader {
 public:
  RowReader(const CsvRow& row, const Words& words, const Catalog& catalog)
      : row_(row), words_(words), catalog_(catalog), assigner_(catalog, settings_, nullptr) {}

  Collective read() {
    made_.id = row_.text("id");
    made_.system = row_.text("system");
    made_.source = row_.text("source");
    made_.op = row_.text("op");
    made_.family = made_.system;  // of a row that is left out before its family is known
    made_.line = row_.line();
    try {
      read_operation();
      read_machines();
      made_.family = family();
      made_.settings = std::move(settings_);
    } catch (const LeftOut& why) {
      made_.left_out = why.reason;
      made_.detail = why.detail;
    } catch (const core::InputError& error) {
      made_.left_out = "a field cannot be read";
      made_.detail = error.what();
    }
    return std::move(made_);
  }

 private:
  std::string text(const char* column) const { return std::string(row_.text(column)); }

  std::int64_t whole(const char* column, std::int64_t least, std::int64_t most) const {
    const auto value = row_.integer(column);
    if (!value) throw LeftOut{fmt::format("{} is not printed", column), ""};
    if (*value < least || *value > most)
      throw LeftOut{fmt::format("{} is not from {} to {}", column, least, most), text(column)};
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
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](Kind one) { return made_.op == core::collective::name_of(one); });
    if (kind == std::end(kKinds)) throw LeftOut{"its operation is none that we simulate", made_.op};
    made_.kind = *kind;
    made_.algorithm = algorithm_in(row_.text("algorithm"));
    if (made_.algorithm != "auto" && !can_do(made_.algorithm)) made_.algorithm = "auto";
    made_.ranks = whole("ranks", 2, kMostRanks);
    made_.nodes = whole("nodes", 1, kMostRanks);
    made_.bytes = whole("bytes", 1, kMostBytes);
    const auto measured = row_.real("time_us");
    if (!measured) throw LeftOut{"no time is printed", ""};
    if (!(*measured > 0) || !std::isfinite(*measured)) throw LeftOut{"time_us is not above 0", text("time_us")};
    made_.measured_us = *measured;
    made_.family = family();
    made_.apart = row_.integer("fit") == 0;
    made_.apart_because = text("apart_because");
  }

  bool can_do(const std::string& algorithm) const {
    const auto& all = core::collective::algorithms();
    return std::any_of(all.begin(), all.end(), [&](const auto& info) {
      return info.name == algorithm && core::collective::can_do(info.algorithm, made_.kind);
    });
  }

  void read_machines() {
    made_.gpu = catalog_.of("gpus").count(text("gpu")) ? text("gpu") : words_.meaning("gpu", text("gpu")).value_or("");
    if (made_.gpu.empty()) throw LeftOut{"its GPU is not in the catalog", text("gpu")};
    if (made_.ranks % made_.nodes != 0)
      throw LeftOut{"ranks is no multiple of nodes", fmt::format("{} on {}", made_.ranks, made_.nodes)};
    assigner_.defaults();
    set("cluster.gpu", made_.gpu);
    made_.nodes = made_.ranks / members_of_a_node();
    set("cluster.nodes", std::to_string(made_.nodes));
    set("cluster.gpus_per_node", std::to_string(made_.ranks / made_.nodes));
    if (row_.given("intra_bw_GBps")) set("cluster.gpu.scale_up_gb_per_s", text("intra_bw_GBps"));
    set_nic();
    // The machines as those of measured steps are, so that what is found out here holds there.
    set("topology", "rail_optimized");
    set("transport", "static_window");
    set("transport.payload_bytes", "16384");
    set("collectives.protocol", "calibrated");
    set(fmt::format("collectives.{}", made_.op), made_.algorithm);
    if (const std::string lacking = lend_calibration(settings_, catalog_); !lacking.empty())
      throw LeftOut{"no GPU of the catalog is calibrated", lacking};
    if (made_.algorithm == "in_switch" &&
        world_of(settings_).configuration.collectives.calibration.reduces_in_switches() == false)
      throw LeftOut{"its switches are not known to reduce", made_.gpu};
  }

  /// What joins the GPUs of a node may join more: a rack of NVL72 is one node with as many as divide the whole.
  std::int64_t members_of_a_node() const {
    const std::int64_t domain = std::get<std::int64_t>(settings_.at("cluster.gpu.scale_up_domain"));
    std::int64_t members = made_.ranks / made_.nodes;
    if (domain > 16)
      for (members = std::min(made_.ranks, domain); made_.ranks % members != 0;) --members;
    return members;
  }

  std::string family() const {
    std::string name = made_.gpu.substr(0, made_.gpu.find('_'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    name += made_.nodes > 1 ? " across nodes" : " in a node";
    return name + (made_.bytes < kLargeBytes ? ", below 1 MiB" : ", from 1 MiB");
  }

  void set_nic() {
    double gbps = kUsualNicGbps;
    if (const auto printed = row_.real("inter_bw_GBps_per_gpu"); printed && *printed > 0) {
      gbps = *printed * 8;
    } else if (made_.nodes > 1) {
      made_.assumed.emplace_back("inter_bw_GBps_per_gpu");
      for (const auto& [name, cluster] : catalog_.of("clusters")) {
        const auto gpu = cluster.figures.find("gpu"), nic = cluster.figures.find("nic_gbps");
        if (gpu == cluster.figures.end() || nic == cluster.figures.end()) continue;
        if (std::get<std::string>(gpu->second.value) == made_.gpu) gbps = std::get<double>(nic->second.value);
      }
    }
    set("cluster.nic_gbps", fmt::format("{}", gbps));
  }

  const CsvRow& row_;
  const Words& words_;
  const Catalog& catalog_;
  Settings settings_;
  Assigner assigner_;
  Collective made_;
};

}  // namespace

bool is_collectives(const import::CsvHeader& header) {
  return std::all_of(std::begin(kNeeded), std::end(kNeeded), [&](const char* name) { return header.has(name); });
}

std::vector<Collective> read_collectives(const import::CsvTable& table, const Catalog& catalog) {
  for (const char* name : kNeeded)
    if (!table.header->has(name))
      throw core::InputError(fmt::format("a table of collectives needs the column '{}'", name), table.header->file, 1);
  const Words words;
  std::vector<Collective> all;
  for (const CsvRow& row : table.rows) all.push_back(RowReader(row, words, catalog).read());
  return all;
}

}  // namespace manyworlds::experiments::measured
