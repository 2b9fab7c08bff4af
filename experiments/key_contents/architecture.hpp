// The layers of a model as data: named blocks of parts, and which block each layer is.
//
//   architecture:
//     blocks:
//       mixer: {mamba2: {heads: 128, head_dim: 64, state: 128, groups: 8}}
//       attention: attention
//       both: [attention, {mlp: {ffn_hidden: 8192}}]
//     layers: [mixer, {repeat: 3, of: [mixer, both]}, attention]
//
// or, of several networks in forward order, of which the last is the model's own, with embedding and head:
//
//   architecture:
//     networks:
//       vision: {hidden: 1024, sequence: 577, blocks: {…}, layers: […]}
//       text: {blocks: {…}, layers: […]}
//
// A part has options of its own, and every option that concerns it is the model's unless the part is given another. Of
// blocks whose names are one character, `layers` may be a text, as M-M-M*-. A network may be given options of the
// model, too, above all its width and the tokens that it has of one sample.
//
// `embedding: false` and `head: false` leave the model's own out, for models of images, whose blocks have others.
//
// A model may have a teacher (core/workload/model/distillation.hpp), which is data, too:
//
//   model: {like: llama3-8b, teacher: llama3-70b}
//   model: {like: llama3-8b, teacher: {like: llama3-70b, layers: 64, loss: kl_and_cross_entropy}}
//   model: {layers: 16, hidden: 4096, …, teacher: {layers: 32}}
//
// The last is as the student but for what it is given. Settings hold the others without the catalog: with the `name` of
// the entry and its values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/distillation.hpp"
#include "core/workload/parts/registry.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// A part as it is written.
struct PartSpec {
  const core::workload::PartType* type = nullptr;
  core::OptionSet own;       // values of its own options
  core::OptionSet branch;    // how it stands on the residual stream
  core::OptionSet of_model;  // values of the model's options that it has instead
};

struct BlockSpec {
  std::string name;            // behind that of its network and a dot, if there are networks
  core::OptionSet of_network;  // values of the model's options that its network has instead
  std::vector<PartSpec> parts;
};

struct ArchitectureSpec {
  bool embedding = true, head = true;  // whether the model has its own
  std::vector<BlockSpec> blocks;
  std::vector<std::uint32_t> block_by_layer;  // index into `blocks`
};

inline constexpr std::size_t kMaxLayers = 10'000;

/// Throws InputError, with file and line, for what is not an architecture.
ArchitectureSpec read_architecture(const import::Node& node);

/// Throws InputError unless `node` is an architecture; if it is a scalar, as the name of a model, unless `text` is one
/// or empty.
void check_architecture(const import::Node& node, const std::string& text);

/// Returns the options of the model that a part may be given.
const std::vector<core::OptionInfo>& part_model_options();

/// Returns the architecture of a model with these options. Throws InputError if a part lacks a size, or `layers` of the
/// model are others.
std::shared_ptr<const core::workload::Architecture> make_architecture(const ArchitectureSpec& spec,
                                                                      const core::workload::Model& model);

/// The same from Model::architecture_text; null if that is empty.
std::shared_ptr<const core::workload::Architecture> architecture_of(const core::workload::Model& model);

/// A teacher as it is written.
struct TeacherSpec {
  std::string like;        // name in the catalog; empty: none is named
  std::string name;        // what it is called if it has all of its sizes; empty: others are the student's
  core::OptionSet values;  // options of a model
  core::OptionSet own;     // of workload::teacher_options()
};

/// Whether a teacher may be given an option of models. The sequence is the student's, and what is trained, dropout and
/// further tokens mean nothing to a model that is evaluated.
bool is_teacher_option(const std::string& name);

/// Throws InputError, with file and line, for what describes no teacher.
TeacherSpec read_teacher(const import::Node& node);

/// Returns the teacher that `student.teacher_text` describes; null if that is empty. Throws InputError if its sizes do
/// not fit each other.
std::shared_ptr<const core::workload::Teacher> teacher_for(const core::workload::Model& student);

}  // namespace manyworlds::experiments
