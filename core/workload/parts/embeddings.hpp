// What the stream of a network begins with, where that is not the model's own embedding: tokens of the same table or of
// another, or patches of images and videos (Dosovitskiy et al. 2021, section 3.1).
#pragma once

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

struct TokenEmbedding {
  bool own_table = false;  // the network has a table of its own; otherwise it reads the model's
  std::int64_t types = 0;  // kinds of segments that a token may belong to (BERT); 0: none
};

struct PatchEmbedding {
  std::int64_t inputs = 0;        // numbers of a patch: channels x height x width x frames
  std::int64_t extra_tokens = 0;  // learned tokens before the patches, as of a class
  bool bias = true;
  bool activate = false;  // the model's activation function follows
};

PartType token_embedding_type();
PartType patch_embedding_type();

/// Appends what embeds a network's tokens on one rank: look-up in a sharded vocabulary, learned positions, dropout.
void add_embedding(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes);

}  // namespace manyworlds::core::workload
