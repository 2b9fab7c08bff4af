// The kinds of descriptors of cuDNN's backend (graph) API that are served, and their attributes.
#pragma once

#include <cstddef>
#include <span>

#include "experiments/capture/cudnn/values.hpp"

namespace manyworlds::experiments::capture::cudnn {

/// What an attribute is to its descriptor: a tensor that an operation reads or writes, or anything else.
enum class Role { setting, input, output };

/// `name` is that of cudnnBackendAttributeName_t without CUDNN_ATTR_; `member` names a tensor in records.
struct Attribute {
  int number;
  const char* name;
  ValueType type;
  bool is_required = false;
  Role role = Role::setting;
  const char* member = "";
};

/// `name` is that of cudnnBackendDescriptorType_t without CUDNN_BACKEND_ and _DESCRIPTOR; `operation` names it in
/// records, and is empty of what is no operation.
struct Kind {
  int number;
  const char* name;
  const char* operation;
  std::span<const Attribute> attributes;
};

/// Returns a kind of descriptors by its number; null if it is not served.
const Kind* kind_of(int number);
/// Returns an attribute of a kind by its number; null if the kind has none of that number.
const Attribute* attribute_of(const Kind& kind, int number);

}  // namespace manyworlds::experiments::capture::cudnn
