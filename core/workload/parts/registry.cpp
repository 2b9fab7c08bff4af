#include "core/workload/parts/registry.hpp"

namespace manyworlds::core::workload {

// A new type of part is a file in this room, or in one below it, and a line here.
// clang-format off
#define MANYWORLDS_PART_TYPES(entry) \
  entry(attention)                   \
  entry(parallel_attention)          \
  entry(sparse_attention)            \
  entry(compressed_attention)        \
  entry(hyper_connection)            \
  entry(cross_attention)             \
  entry(feed_forward)                \
  entry(experts)                     \
  entry(conditioning)                \
  entry(modulation)                  \
  entry(joint_attention)             \
  entry(joint_feed_forward)          \
  entry(parallel_block)              \
  entry(denoising_head)              \
  entry(mamba2)                      \
  entry(linear_attention)            \
  entry(short_convolution)           \
  entry(gated_delta)                 \
  entry(token_embedding)             \
  entry(patch_embedding)             \
  entry(convolution)                 \
  entry(batch_norm)                  \
  entry(pooling)                     \
  entry(bottleneck)                  \
  entry(convolution_1d)              \
  entry(conformer_convolution)       \
  entry(relative_attention)          \
  entry(linear)                      \
  entry(output_norm)                 \
  entry(classifier)                  \
  entry(contrastive_head)            \
  entry(tables)                      \
  entry(dot_interaction)             \
  entry(cross_interaction)           \
  entry(perceptron)
// clang-format on

#define MANYWORLDS_DECLARE(name) PartType name##_type();
MANYWORLDS_PART_TYPES(MANYWORLDS_DECLARE)
#undef MANYWORLDS_DECLARE

const std::vector<PartType>& part_types() {
#define MANYWORLDS_CALL(name) name##_type(),
  static const std::vector<PartType> all{MANYWORLDS_PART_TYPES(MANYWORLDS_CALL)};
#undef MANYWORLDS_CALL
  return all;
}

const PartType* find_part_type(std::string_view name) {
  for (const PartType& each : part_types())
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace manyworlds::core::workload
