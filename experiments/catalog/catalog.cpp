// Loads the catalog: the compiled files, a folder or a file of the user's, and what entries take from one another.
#include "experiments/catalog/catalog.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "experiments/catalog/model_files.hpp"
#include "experiments/catalog/name_hints.hpp"
#include "experiments/catalog/read_entry.hpp"
#include "experiments/clusters/fabric_file.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments {
namespace {

namespace fs = std::filesystem;
using core::InputError;
using import::Entry;
using import::Node;

const std::vector<std::string> kKinds{"clusters", "gpus", "libraries", "models", "stacks"};
constexpr const char* kFabric = "fabric";  // in a file of the user's: the graph of its cluster
constexpr std::size_t kMaxFiles = 1'000;   // per kind, of a user

/// Returns the files of one kind, sorted by name.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (files.size() == kMaxFiles)
      throw InputError(fmt::format("holds more than {} files", kMaxFiles), folder.string());
    files.push_back(at->path());
  }
  if (code) throw InputError(fmt::format("cannot be read: {}", code.message()), folder.string());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (import::valid_text_length(name) < name.size() || name.find_first_of("\n\t\r") != std::string::npos)
      throw InputError("holds a file whose name is no line of UTF-8; rename it", folder.string());
    if (file.extension() != ".yaml")
      throw InputError("is no .yaml file; a catalog folder holds nothing else", file.string());
  }
  return files;
}

}  // namespace

CatalogEntry read_catalog_entry(const std::string& kind, const std::string& text, const std::string& file) {
  return read_entry(kind, import::parse_yaml(text, file));
}

core::compute::Gpu gpu_of(const CatalogEntry& entry) {
  core::OptionSet values;
  for (const core::OptionInfo& info : core::compute::gpu_options().infos())
    if (const auto sourced = entry.values.find(info.name); sourced != entry.values.end())
      values[info.name] = sourced->second.value;
  return core::compute::gpu_options().make(values);
}

namespace {

using Kinds = std::map<std::string, Catalog::Entries>;

void add_entry(Kinds& kinds, const std::string& kind, const std::string& name, const Node& node) {
  const std::string& file = *node.file;
  if (kinds[kind].count(name))
    throw InputError(fmt::format("'{}' is in the catalog already; give this one another name", name), file);
  CatalogEntry entry = read_entry(kind, node);
  for (const std::string& also : entry.also_called)
    for (const auto& [other, known] : kinds[kind])
      if (also == other || std::count(known.also_called.begin(), known.also_called.end(), also) > 0)
        throw InputError(fmt::format("'{}' is what {} is called already", also, other), file);
  kinds[kind][name] = std::move(entry);
}

/// The compiled files, parsed once for all catalogs of a process, which copy them.
const Kinds& compiled_entries() {
  static const Kinds all = [] {
    Kinds kinds;
    for (const std::string& kind : kKinds) kinds[kind];
    for (const CatalogFile& file : compiled_catalog())
      add_entry(kinds, file.kind, file.name,
                import::parse_yaml(file.text, fmt::format("catalog/{}/{}.yaml", file.kind, file.name)));
    return kinds;
  }();
  return all;
}

}  // namespace

Catalog::Catalog(const std::string& path) : kinds_(compiled_entries()), model_files_(std::make_shared<ModelFiles>()) {
  std::error_code code;
  if (fs::is_regular_file(path, code))
    add_file(path, fs::absolute(path).string());
  else if (!path.empty())
    add_folder(path);
  finish();
}

void Catalog::finish() {
  for (const char* kind : {"gpus", "stacks"})
    for (auto& [name, entry] : kinds_.at(kind)) copy_constants(kind, name, entry);
  check_gpus();
}

void Catalog::add_cluster_file(const std::string& name, const std::string& path) {
  for (const auto& [known, entry] : entries("clusters"))
    if (std::count(entry.also_called.begin(), entry.also_called.end(), name) > 0) return;
  const Entries before = entries("clusters");
  add_file(path, name);
  CatalogEntry* added = nullptr;
  for (auto& [known, entry] : kinds_.at("clusters")) {
    if (before.count(known) > 0) continue;
    if (added != nullptr) throw InputError("has more than one cluster; a cluster file has one", path);
    added = &entry;
  }
  if (added == nullptr) throw InputError("has no cluster; `manyworlds cluster` writes a file with one", path);
  added->also_called.push_back(name);
  finish();
}

/// Adds the entries of a file: mappings by kind, and in them by name. The cluster beside a fabric has the file, as
/// `named` in settings, for its fabric.
void Catalog::add_file(const std::string& path, const std::string& named) {
  const Node root = import::parse_yaml(import::read_text(path), path);
  if (root.kind != Node::Kind::mapping || root.entries.empty())
    root.fail(fmt::format("a catalog file must be a mapping of {} to entries by their names", fmt::join(kKinds, ", ")));
  for (const Entry& kind : root.entries) {
    if (kind.key == kFabric) continue;
    if (std::find(kKinds.begin(), kKinds.end(), kind.key) == kKinds.end()) fail_unknown_key(kind, kKinds);
    if (kind.value.kind != Node::Kind::mapping)
      kind.value.fail(fmt::format("'{}' must be a mapping of names to entries", kind.key));
    if (kind.value.entries.size() > kMaxFiles) kind.value.fail(fmt::format("holds more than {} entries", kMaxFiles));
    for (const Entry& entry : kind.value.entries) add_entry(kinds_, kind.key, entry.key, entry.value);
  }
  const Node *fabric = root.find(kFabric), *named_clusters = root.find("clusters");
  if (fabric == nullptr) return;
  clusters::read_fabric(*fabric);  // refuses what is none
  if (named_clusters == nullptr || named_clusters->entries.size() != 1)
    fabric->fail("is the graph of the one cluster that the file must have under 'clusters'");
  kinds_.at("clusters").at(named_clusters->entries[0].key).values[kFabric] = {named, path, "read", {}};
}

void Catalog::add_folder(const std::string& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) throw InputError("is no readable folder or file; --catalog wants one", folder);
  bool any = false;
  for (const std::string& kind : kKinds) {
    const fs::path inside = fs::path(folder) / kind;
    if (!fs::is_directory(inside, code)) continue;
    any = true;
    for (const fs::path& file : files_of(inside))
      add_entry(kinds_, kind, file.stem().string(),
                import::parse_yaml(import::read_text(file.string()), file.string()));
  }
  if (!any) throw InputError("has none of the folders gpus, libraries, models, clusters and stacks", folder);
}

namespace {

/// Whether a value tells how a chip runs kernels or how fast a stack launches them, and not what the chip is sold as or
/// what the stack chooses.
bool is_fitted_constant(const std::string& key) {
  constexpr std::string_view kOthers[] = {"launch_us", "sustained_rate", "communication_slowdown", "host_kernel_us",
                                          "host_collective_us"};
  return key.ends_with("_efficiency") || key.starts_with("attention_") ||
         (key.find("gemm_") != std::string::npos && key != "gemm_workspace_mib") ||
         std::find(std::begin(kOthers), std::end(kOthers), key) != std::end(kOthers);
}

}  // namespace

/// Returns what a constant is on the GPUs or stacks for which it was fitted or read; nothing if that is one value.
std::optional<GuessedRange> Catalog::measured_span(const std::string& kind, const std::string& key) const {
  std::vector<double> values;
  for (const auto& [name, entry] : entries(kind))
    if (const auto found = entry.values.find(key); found != entry.values.end() && found->second.certainty != "guess")
      if (const auto number = number_of(found->second.value)) values.push_back(*number);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (values.empty() || *low == *high) return std::nullopt;
  return GuessedRange{*low, *high};
}

/// Copies constants to the GPUs and stacks that refer to another one's, which gets its own before. They are guesses
/// unless they are of the same chip, with the range that they span where they were measured. Constants of the
/// communication library are in entries of their own: see borrow_calibration().
void Catalog::copy_constants(const std::string& kind, const std::string& name, CatalogEntry& entry) {
  if (entry.constants_of.empty() || entry.has_constants) return;
  entry.has_constants = true;
  Node place;
  place.file = std::make_shared<const std::string>(fmt::format("catalog/{}/{}.yaml", kind, name));
  CatalogEntry& owner = kinds_.at(kind).at(find_named(kind, entry.constants_of, place).first);
  copy_constants(kind, entry.constants_of, owner);
  for (const auto& [key, sourced] : owner.values) {
    if (!is_fitted_constant(key) || entry.values.contains(key)) continue;
    SourcedValue copy{sourced.value, fmt::format("as {}: {}", entry.constants_of, sourced.source), sourced.certainty,
                      sourced.range};
    if (!entry.same_chip && sourced.certainty != "guess") {
      copy.certainty = "guess";
      copy.range = measured_span(kind, key);
    }
    entry.values.emplace(key, std::move(copy));
  }
}

void Catalog::check_gpus() const {
  for (const auto& [name, cluster] : entries("clusters")) {
    const auto gpu = cluster.values.find("gpu");
    if (gpu == cluster.values.end()) continue;
    Node place;
    place.file = std::make_shared<const std::string>(fmt::format("catalog/clusters/{}.yaml", name));
    find("gpus", std::get<std::string>(gpu->second.value), place);
  }
  for (const auto& [name, library] : entries("libraries"))
    for (const std::string& gpu : library.gpus) {
      Node place;
      place.file = std::make_shared<const std::string>(fmt::format("catalog/libraries/{}.yaml", name));
      find("gpus", gpu, place);
    }
}

const Catalog::Entries& Catalog::entries(const std::string& kind) const {
  const auto found = kinds_.find(kind);
  MANYWORLDS_CHECK(found != kinds_.end(), "no catalog of '{}'", kind);
  return found->second;
}

const Catalog::Entries::value_type& Catalog::find_named(const std::string& kind, const std::string& name,
                                                        const Node& at) const {
  const Entries& known = entries(kind);
  const auto found = known.find(name);
  if (found != known.end()) return *found;
  const auto matches = [&, wanted = plain_name(name)](const std::string& one) { return plain_name(one) == wanted; };
  const auto own = std::find_if(known.begin(), known.end(), [&](const auto& entry) { return matches(entry.first); });
  if (own != known.end()) return *own;
  const auto also = [&](const Entries::value_type& entry) {
    const auto& names = entry.second.also_called;
    return std::any_of(names.begin(), names.end(), matches);
  };
  if (const auto called = std::find_if(known.begin(), known.end(), also); called != known.end()) return *called;
  if (kind == "models")
    if (const std::string path = model_file(name, at); !path.empty()) return model_files_->read(path);
  constexpr const char* kCustomClusterHint =
      "give one of your own, as in cluster: {gpu: {like: a100_80, scale_up: pcie, scale_up_gb_per_s: 24}, "
      "nodes: 4, gpus_per_node: 8, nic_gbps: 200}";
  constexpr const char* kModelFileHint = "give the path of its config.json";
  const std::string nearest = unknown_name_hint(kind, name, known);
  const std::string own_hint = kind == "clusters" ? kCustomClusterHint : kind == "models" ? kModelFileHint : "";
  const char* joint = own_hint.empty() ? "" : nearest.ends_with('?') ? " Or " : "; or ";
  at.fail(fmt::format("unknown {} '{}'{}{}{}", kind.substr(0, kind.size() - 1), name, nearest, joint, own_hint));
}

}  // namespace manyworlds::experiments
