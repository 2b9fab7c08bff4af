// The list of collective algorithms, one file each: their names, capabilities and DAG builders.
#pragma once

#include <vector>

#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::core::collective {

struct AlgorithmInfo {
  Algorithm algorithm = Algorithm::ring;
  const char* name = "";
  const char* help = "";
  std::vector<Kind> kinds;  // the kinds that it implements
  void (*add)(DagBuilder& dag, const Shape& shape) = nullptr;
  bool pipelined = false;        // divides transfers into chunks of Shape::chunk_bytes
  bool multi_channel = false;    // uses Shape::channels connections in parallel
  bool intra_node_only = false;  // an automatic library considers it inside a node only
  bool in_nccl = false;          // a calibrated library may select it, as NCCL does
};

/// Returns all algorithms, in the order of Algorithm.
const std::vector<AlgorithmInfo>& algorithms();
const AlgorithmInfo& info_of(Algorithm algorithm);
bool supports(Algorithm algorithm, Kind kind);

/// Returns the name of a kind, as in options and results.
const char* name_of(Kind kind);

void add_ring(DagBuilder& dag, const Shape& shape);
void add_two_level(DagBuilder& dag, const Shape& shape);
void add_node_leaders(DagBuilder& dag, const Shape& shape);
void add_halving_doubling(DagBuilder& dag, const Shape& shape);
void add_recursive_doubling(DagBuilder& dag, const Shape& shape);
void add_double_tree(DagBuilder& dag, const Shape& shape);
void add_direct(DagBuilder& dag, const Shape& shape);
void add_in_switch(DagBuilder& dag, const Shape& shape);
void add_pairwise(DagBuilder& dag, const Shape& shape);
void add_node_aware(DagBuilder& dag, const Shape& shape);
void add_hybrid_ep(DagBuilder& dag, const Shape& shape);
void add_chain(DagBuilder& dag, const Shape& shape);
void add_binomial_tree(DagBuilder& dag, const Shape& shape);

}  // namespace manyworlds::core::collective
