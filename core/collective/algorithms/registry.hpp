// The algorithms of collective operations, one file each: what each can do, and what lists and options call it.
#pragma once

#include <vector>

#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::core::collective {

struct AlgorithmInfo {
  Algorithm algorithm = Algorithm::ring;
  const char* name = "";
  const char* help = "";
  std::vector<Kind> kinds;  // what it can carry out
  void (*add)(DagBuilder& dag, const Shape& shape) = nullptr;
  bool pipelined = false;      // it cuts transfers into chunks where Shape::chunk_bytes asks for it
  bool multi_channel = false;  // it spreads over Shape::channels connections
  bool inside_only = false;    // an automatic library uses it inside a node alone
  bool as_nccl = false;        // a calibrated library picks it by itself
};

const std::vector<AlgorithmInfo>& algorithms();
const AlgorithmInfo& info_of(Algorithm algorithm);
bool can_do(Algorithm algorithm, Kind kind);

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
