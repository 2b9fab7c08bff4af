// The sweep of a search: the layouts of a model on a cluster that are worth simulating, as a YAML document.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"

namespace manyworlds::farm {

/// What a job fixes in a search, by keys below `model`, `strategy.stack` and `strategy`.
struct SearchedJob {
  std::string name;
  std::map<std::string, std::string> model, stack, strategy;
};

struct SearchOptions {
  std::string model;
  std::optional<SearchedJob> job;  // instead of `model`
  std::string cluster;  // a name of the catalog or a cluster file; if empty, the catalog's cluster with `gpu`
  std::string gpu;
  std::string stack = "megatron-core";
  std::string topology;                       // empty: the cluster's own fabric, or rail_optimized
  std::string node_list;                      // hosts of that fabric to run on; empty: the first
  std::optional<std::int64_t> gpus;           // instead of nodes: whole nodes, or fewer GPUs than one node has
  std::optional<std::int64_t> nodes;          // default: all nodes of the cluster
  std::optional<std::int64_t> global_batch;   // default: one sample per GPU
  std::optional<std::int64_t> sequence;       // default: the model's
  std::optional<std::int64_t> gpus_per_node;  // of nameless GPUs, instead of a cluster: no hardware is read
  bool all_schedules = false;                 // also schedules that the stack does not offer
  std::vector<std::string> layouts;           // conditions that layouts must meet, as in a sweep's `where`
  std::vector<std::string> set;               // "key=value": a fixed value or, for a searched key, the values to try
};

/// Returns whether --set gives a key, by its full name.
bool is_set(const SearchOptions& options, const std::string& key);

struct SearchSpace {
  std::string name;                  // "mixtral-8x7b-on-1024-h100_sxm"
  std::string yaml;                  // the sweep document
  std::string stack;                 // of the catalog
  std::vector<std::string> assumed;  // what the question does not say: "strategy.global_batch=256 (…)"
};

/// Machines of a cluster.
struct ClusterSpec {
  std::string cluster;  // a name of the catalog, or the path of a cluster file
  std::string gpu;
  std::int64_t nodes = 1, gpus_per_node = 8;
  std::string fabric;        // path of a cluster file; empty: none
  std::string node_list;     // hosts of that fabric; empty: the first
  std::int64_t unused = 0;   // GPUs of each rack that a job of another multiple leaves idle
  bool is_nameless = false;  // nothing is known of them
  std::int64_t gpus() const { return nodes * gpus_per_node; }
};

/// Returns the machines that the options name: whole nodes, fewer GPUs than one node has, or as many of each rack as
/// the number of GPUs is a multiple of, as 512 are of 64 in racks of 72.
ClusterSpec machines_of(const SearchOptions& options, const experiments::Catalog& catalog);
/// Returns what of each rack is used, as an assumed setting; empty if racks are used whole.
std::string unused_text(const ClusterSpec& machines);
/// Returns them as a document names them, in YAML.
std::string cluster_text(const ClusterSpec& machines);

/// Returns the space of sizes that divide what they partition (heads, layers, experts, GPUs), the schedules that the
/// stack offers, recomputation, ZeRO stages and, for models with experts, dispatchers. Rules and `where` exclude
/// invalid layouts and duplicates. Fidelity is analytic. Throws InputError for names or values that the catalog lacks,
/// and for values of searched keys that no layout of the space has.
SearchSpace search_space(const SearchOptions& options, const experiments::Catalog& catalog);

/// Returns `yaml` with a line that samples so many of its valid points.
std::string with_sample(const std::string& yaml, std::int64_t experiments, std::int64_t seed);

}  // namespace manyworlds::farm
