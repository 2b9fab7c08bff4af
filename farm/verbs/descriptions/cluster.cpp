// `manyworlds cluster FILE…`: what the tools of a cluster print becomes a cluster file, with the graph of its fabric.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "experiments/clusters/fabric_file.hpp"
#include "experiments/clusters/survey.hpp"
#include "experiments/discovery/cluster_files.hpp"
#include "farm/calibration/calibrated_catalog.hpp"
#include "farm/calibration/calibrated_library.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {
namespace {

namespace clusters = experiments::clusters;
using experiments::Catalog;

constexpr std::size_t kMaxName = 60, kShown = 8;

/// A GPU that a compute capability is taken for, and others that have it too.
struct Capability {
  std::int64_t sm;
  const char *gpu, *others;
};
constexpr Capability kCapabilities[] = {{70, "v100_32", ""},
                                        {80, "a100_80", "a100_40, a800_sxm"},
                                        {90, "h100_sxm", "h200_sxm, h800_sxm, h20"},
                                        {100, "b200_hgx", "gb200_nvl72"},
                                        {103, "b300_hgx", "gb300_nvl72"}};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

double number(const cxxopts::ParseResult& parsed, const char* name, double low, double high) {
  const double value = parsed[name].as<double>();
  if (value != 0 && !(value >= low && value <= high))
    throw core::InputError(fmt::format("must be from {} to {}", low, high), std::string("--") + name);
  return value;
}

/// What the file and its user say of the cluster.
class ClusterWriter {
 public:
  ClusterWriter(const cxxopts::ParseResult& parsed, const Catalog& catalog) : parsed_(parsed), catalog_(catalog) {}

  /// Reads the files, completes what they lack, and returns what was found as a table.
  std::string read(const std::vector<std::string>& paths);
  std::string yaml();
  const std::string& name() const { return name_; }

 private:
  void choose_gpu();
  void complete_fabric();
  void choose_name();
  void calibrate();
  std::string node_values() const;

  const cxxopts::ParseResult& parsed_;
  const Catalog& catalog_;
  clusters::ClusterFiles files_;
  std::string name_, gpu_;
  std::vector<std::string> notes_;
  double nic_gbps_ = 0;
  std::int64_t gpus_per_node_ = 0, nics_per_node_ = 0, nodes_ = 1;
  std::string measured_;  // GPU and library of the catalog that logs of nccl-tests gave
};

void ClusterWriter::choose_gpu() {
  if (parsed_.count("gpu") > 0) {
    experiments::import::Node at;
    at.file = std::make_shared<const std::string>("--gpu");
    gpu_ = catalog_.find_named("gpus", required(parsed_, "gpu"), at).first;
    return;
  }
  const std::int64_t sm = files_.node ? files_.node->compute_capability : 0;
  for (const Capability& one : kCapabilities)
    if (one.sm == sm && catalog_.entries("gpus").count(one.gpu) > 0) {
      gpu_ = one.gpu;
      notes_.push_back(fmt::format("sm_{} is taken for {}{}", sm, gpu_,
                                   *one.others ? fmt::format(" ({} have it too: --gpu)", one.others) : ""));
      return;
    }
  throw core::InputError("the files do not tell the kind of GPU: give --gpu NAME (`manyworlds list gpus`)");
}

/// Settles numbers and rates of NICs, from the fabric, the node and the options.
void ClusterWriter::complete_fabric() {
  const double given_gbps = number(parsed_, "nic-gbps", 0.001, 1e5);
  double node_gbps = 0;
  std::int64_t node_nics = 0;
  if (files_.node) {
    node_gbps = clusters::keep_fast_nics(*files_.node);
    node_nics = static_cast<std::int64_t>(files_.node->nics.size());
  }
  const auto given_nics = static_cast<std::int64_t>(number(parsed_, "nics-per-node", 1, 4'096));
  gpus_per_node_ = static_cast<std::int64_t>(number(parsed_, "gpus-per-node", 1, 576));
  if (gpus_per_node_ == 0) gpus_per_node_ = files_.gpus_per_host;
  nics_per_node_ = given_nics > 0 ? given_nics : node_nics;
  nodes_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(number(parsed_, "nodes", 1, 131'072)));
  nic_gbps_ = given_gbps > 0 ? given_gbps : node_gbps;
  if (files_.fabric) {
    clusters::Fabric& fabric = *files_.fabric;
    if (fabric.counts_cables) nics_per_node_ = fabric.nics_per_host;
    if (gpus_per_node_ == 0 && fabric.counts_cables) {
      gpus_per_node_ = nics_per_node_;
      notes_.push_back(
          fmt::format("a GPU for each of the {} NICs of a host is taken (--gpus-per-node)", nics_per_node_));
    }
    if (nics_per_node_ == 0) nics_per_node_ = gpus_per_node_;
    if (gpus_per_node_ == 0)
      throw core::InputError("the files do not tell how many GPUs a node has: give --gpus-per-node N",
                             files_.fabric_file);
    const double known = fabric.usual_nic_gbps();
    if (known == 0 && nic_gbps_ == 0)
      throw core::InputError("has no rates: give --nic-gbps, the rate of one NIC", files_.fabric_file);
    const std::int64_t assumed = clusters::assume_rates(fabric, nic_gbps_, nics_per_node_,
                                                        std::max(1.0, number(parsed_, "oversubscription", 1, 4'096)));
    if (given_gbps > 0 && assumed == 0)
      throw core::InputError(fmt::format("{} tells the rates of all NICs and cables, mostly {} Gb/s; leave it out",
                                         files_.fabric_file, known),
                             "--nic-gbps");
    nic_gbps_ = fabric.usual_nic_gbps();
    if (node_nics > 0 && node_nics != fabric.nics_per_host)
      notes_.push_back(fmt::format("{} has {} NICs, a host of {} {}: the fabric's count is taken", files_.node_file,
                                   node_nics, files_.fabric_file, fabric.nics_per_host));
  }
  if (nics_per_node_ == 0) nics_per_node_ = gpus_per_node_;
  if (nic_gbps_ == 0)
    throw core::InputError("tells no rate of its NICs: give --nic-gbps, the rate of one", files_.node_file);
}

void ClusterWriter::choose_name() {
  const std::string output = parsed_.count("output") > 0 ? required(parsed_, "output") : "cluster";
  std::string name =
      parsed_.count("name") > 0 ? required(parsed_, "name") : std::filesystem::path(output).stem().string();
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > kMaxName || !std::all_of(name.begin(), name.end(), is_plain) ||
      !(name[0] >= 'a' && name[0] <= 'z') || catalog_.entries("clusters").count(name) > 0)
    throw core::InputError("must be a letter followed by letters, digits, '_', '-' and '.', and no name of the catalog",
                           "--name " + name);
  name_ = name;
}

/// Fits the communication library to logs of nccl-tests of the machine.
void ClusterWriter::calibrate() {
  if (parsed_.count("nccl-tests") == 0) return;
  CalibratedMachine machine;
  machine.base = gpu_;
  machine.name = name_ + "-gpu";
  const double nic_gbps = nic_gbps_ * static_cast<double>(nics_per_node_) / static_cast<double>(gpus_per_node_);
  machine.files =
      read_measured_files(parsed_["nccl-tests"].as<std::vector<std::string>>(), machine.base, nic_gbps, catalog_);
  if (machine.files.collectives.empty() || !machine.files.kernels.empty() || !machine.files.steps.empty())
    throw core::InputError("must be collectives; `manyworlds calibrate` reads kernels and steps", "--nccl-tests");
  machine.collectives = calibrate_library(machine.files.collectives);
  if (machine.collectives.rows.empty()) throw core::InputError("no row can be predicted", "--nccl-tests");
  const std::string text = catalog_file(machine, catalog_);
  measured_ = text.substr(text.find('\n') + 1);
  std::cout << calibration_text(machine);
  gpu_ = machine.name;
}

std::string ClusterWriter::read(const std::vector<std::string>& paths) {
  std::vector<std::string> all = paths;
  if (parsed_.count("nccl-topo") > 0) all.push_back(required(parsed_, "nccl-topo"));
  files_ = clusters::read_cluster_files(all);
  choose_gpu();
  complete_fabric();
  std::string text;
  const std::size_t shown = parsed_.count("all") > 0 ? SIZE_MAX : kShown;
  if (files_.fabric) {
    const clusters::Survey survey = clusters::survey_of(*files_.fabric);
    nodes_ = survey.complete_hosts;
    text += fmt::format("{} ({})\n{}", files_.fabric_file, files_.fabric->format,
                        clusters::survey_text(*files_.fabric, survey, shown));
  }
  if (files_.node)
    text += fmt::format("{} ({})\n{}", files_.node_file, files_.node->format, clusters::node_text(*files_.node));
  text += fmt::format("cluster\n  {:<11} {} nodes of {} x {}, {} NICs of {} Gb/s each\n", "machines", nodes_,
                      gpus_per_node_, gpu_, nics_per_node_, nic_gbps_);
  for (const std::string& note : notes_) text += fmt::format("  {:<11} {}\n", "note", note);
  return text;
}

std::string ClusterWriter::node_values() const {
  std::string text = fmt::format("      gpu: {}\n      nodes: {}\n      gpus_per_node: {}\n      nic_gbps: {}\n", gpu_,
                                 nodes_, gpus_per_node_, nic_gbps_);
  if (nics_per_node_ != gpus_per_node_) text += fmt::format("      nics_per_node: {}\n", nics_per_node_);
  if (files_.fabric && files_.fabric->format == "netq") text += "      network: roce\n";
  return text;
}

std::string ClusterWriter::yaml() {
  choose_name();
  calibrate();
  const std::string source = files_.fabric ? files_.fabric_file : files_.node_file;
  const std::string format = files_.fabric ? files_.fabric->format : files_.node->format;
  std::string text = fmt::format(
      "# Written by manyworlds cluster; used with cluster: FILE in a document, and --cluster FILE in a search.\n{}"
      "clusters:\n  {}:\n    help: {}\n    source: {}\n    certainty: read\n    values:\n{}",
      measured_, name_, quoted(fmt::format("{} nodes of {} x {}", nodes_, gpus_per_node_, gpu_)),
      quoted(fmt::format("{} ({})", source, format)), node_values());
  if (files_.fabric) text += clusters::fabric_yaml(*files_.fabric);
  return text;
}

int run_cluster(const Invocation& invocation) {
  cxxopts::Options options(
      "manyworlds cluster",
      "Writes a cluster file from what the tools of a cluster print: its hosts, switches, cables and "
      "rates; it says what is missing or unlike the rest.");
  options.add_options()(
      "file",
      "of ibnetdiscover, iblinkinfo, nvidia-smi topo -m; NCCL's topology XML, Slurm's topology.conf, NetQ's JSON, "
      "InfraGraph's YAML",
      cxxopts::value<std::vector<std::string>>(),
      "FILE")("gpu", "the GPU of the catalog", cxxopts::value<std::string>(), "NAME")(
      "nccl-topo", "NCCL's topology XML of a node, as another FILE", cxxopts::value<std::string>(), "FILE.xml")(
      "nccl-tests", "logs of nccl-tests on the machine: the library's figures are fitted to them",
      cxxopts::value<std::vector<std::string>>(), "LOG")("gpus-per-node", "GPUs of a node; default: as the files say",
                                                         cxxopts::value<double>()->default_value("0"), "N")(
      "nics-per-node", "NICs of a node, where no file tells", cxxopts::value<double>()->default_value("0"), "N")(
      "nic-gbps", "rate of one NIC and cable, where no file tells", cxxopts::value<double>()->default_value("0"),
      "GBPS")("oversubscription", "of each switch, where the file has no numbers of cables",
              cxxopts::value<double>()->default_value("1"),
              "N")("nodes", "machines, where no file tells", cxxopts::value<double>()->default_value("0"), "N")(
      "name", "what the cluster is called; default: as the output", cxxopts::value<std::string>(), "NAME")(
      "all", "name everything that is missing or unlike the rest")(
      "o,output", "the cluster file to write; default: print what was found only", cxxopts::value<std::string>(),
      "FILE.yaml")("catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
                   cxxopts::value<std::string>()->default_value(""), "PATH");
  options.parse_positional({"file"});
  options.positional_help("FILE…");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (parsed->count("file") == 0) throw core::InputError("FILE is required: what a tool printed (try -h)");
  const Catalog catalog((*parsed)["catalog"].as<std::string>());
  ClusterWriter writer(*parsed, catalog);
  std::cout << writer.read((*parsed)["file"].as<std::vector<std::string>>());
  if (parsed->count("output") == 0) return kExitDone;
  const std::string output = required(*parsed, "output");
  io::write_atomically(output, writer.yaml());
  std::cout << fmt::format("wrote {}: use it with --cluster {}, or cluster: {} in a document\n", output, output,
                           output);
  return kExitDone;
}

}  // namespace

Command cluster_command() {
  return {
      .name = "cluster", .summary = "a cluster file from what ibnetdiscover, NCCL or Slurm say", .run = run_cluster};
}

}  // namespace manyworlds::farm::commands
