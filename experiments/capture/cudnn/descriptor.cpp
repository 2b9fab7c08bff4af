#include "experiments/capture/cudnn/descriptor.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "experiments/capture/cudnn/engines.hpp"
#include "experiments/capture/cudnn/graph_checks.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

std::string name_of(const Descriptor& of) {
  return std::string("CUDNN_BACKEND_") + of.kind->name + "_DESCRIPTOR";
}
std::string name_of(const Attribute& of) {
  return std::string("CUDNN_ATTR_") + of.name;
}

/// The attribute, and whether a value of the type may be given for it.
Outcome find_attribute(const Descriptor& of, int number, int type, const Attribute*& found) {
  found = attribute_of(*of.kind, number);
  if (found == nullptr) return {kBadParameter, name_of(of) + " has no attribute " + std::to_string(number)};
  if (!is_given_as(found->type, type))
    return {kAttributeType, name_of(*found) + " of " + name_of(of) + " is not of the type " + std::to_string(type)};
  return {};
}

Outcome take_descriptors(const Attribute& attribute, Value& into, const void* elements) {
  for (std::int64_t i = 0; i < into.count; ++i) {
    const auto* handle = static_cast<DescriptorHandle* const*>(elements)[i];
    if (handle == nullptr) return {kNullPointer, name_of(attribute) + ": a descriptor is null"};
    if (!handle->descriptor->is_final)
      return {kNotFinalized, name_of(attribute) + ": " + name_of(*handle->descriptor) + " is not finalized"};
    into.descriptors.push_back(handle->descriptor);
  }
  return {};
}

Outcome give_descriptors(const Attribute& attribute, const Value& value, std::int64_t count, void* elements) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto* handle = static_cast<DescriptorHandle* const*>(elements)[i];
    if (handle == nullptr) return {kNullPointer, name_of(attribute) + ": a descriptor is null"};
    const auto& found = value.descriptors[static_cast<std::size_t>(i)];
    if (handle->descriptor->kind != found->kind)
      return {kDescriptorType,
              name_of(attribute) + ": " + name_of(*found) + " cannot be given into " + name_of(*handle->descriptor)};
    *handle->descriptor = *found;
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> Descriptor::int64s(int attribute) const {
  const auto found = values.find(attribute);
  if (found == values.end()) return {};
  std::vector<std::int64_t> all(static_cast<std::size_t>(found->second.count));
  if (!all.empty()) std::memcpy(all.data(), found->second.elements.data(), 8 * all.size());
  return all;
}

bool Descriptor::has_vectors() const {
  const std::vector<std::int64_t> count = int64s(attribute::kTensorVectorCount);
  return !count.empty() && count.front() > 1;
}

std::vector<std::int64_t> Descriptor::dimensions() const {
  std::vector<std::int64_t> all = int64s(attribute::kTensorDimensions);
  const std::vector<std::int64_t> axis = int64s(attribute::kTensorVectorAxis);
  const std::size_t of = axis.empty() ? 1 : static_cast<std::size_t>(axis.front());
  if (has_vectors() && of < all.size()) all[of] *= int64s(attribute::kTensorVectorCount).front();
  return all;
}

int Descriptor::number(int attribute, int otherwise) const {
  const auto found = values.find(attribute);
  if (found == values.end() || found->second.count < 1) return otherwise;
  int number = 0;
  std::memcpy(&number, found->second.elements.data(), std::min<std::size_t>(4, element_bytes(found->second.type)));
  return number;
}

const Descriptor* Descriptor::descriptor(int attribute) const {
  const auto& all = descriptors(attribute);
  return all.empty() ? nullptr : all.front().get();
}

const std::vector<std::shared_ptr<const Descriptor>>& Descriptor::descriptors(int attribute) const {
  static const std::vector<std::shared_ptr<const Descriptor>> none;
  const auto found = values.find(attribute);
  return found == values.end() ? none : found->second.descriptors;
}

Outcome set(Descriptor& of, int attribute, int type, std::int64_t count, const void* elements) {
  if (of.is_final) return {kNotInitialized, name_of(of) + " is finalized: its attributes stay"};
  const Attribute* found = nullptr;
  if (Outcome wrong = find_attribute(of, attribute, type, found); wrong.status != kFine) return wrong;
  constexpr std::int64_t kLargestCount = 1 << 16;
  if (count < 0 || count > kLargestCount)
    return {kBadParameter, name_of(*found) + ": " + std::to_string(count) + " elements"};
  if (count > 0 && elements == nullptr) return {kNullPointer, name_of(*found) + ": the elements are null"};
  Value value{type, count, {}, {}};
  if (type == static_cast<int>(ValueType::descriptor)) {
    if (Outcome wrong = take_descriptors(*found, value, elements); wrong.status != kFine) return wrong;
  } else if (count > 0) {
    value.elements.resize(static_cast<std::size_t>(count) * element_bytes(type));
    std::memcpy(value.elements.data(), elements, value.elements.size());
  }
  of.values[attribute] = std::move(value);
  return {};
}

Outcome get(const Descriptor& of, int attribute, int type, std::int64_t room, std::int64_t* count, void* elements) {
  if (!of.is_final) return {kNotFinalized, name_of(of) + " is not finalized"};
  const Attribute* found = nullptr;
  if (Outcome wrong = find_attribute(of, attribute, type, found); wrong.status != kFine) return wrong;
  Value value = answered(of, attribute).value_or(Value{});
  if (const auto known = of.values.find(attribute); known != of.values.end()) value = known->second;
  if (count != nullptr) *count = value.count;
  const std::int64_t given = std::min(room, value.count);
  if (elements == nullptr || given <= 0) return {};
  if (type == static_cast<int>(ValueType::descriptor)) return give_descriptors(*found, value, given, elements);
  std::memcpy(elements, value.elements.data(), static_cast<std::size_t>(given) * element_bytes(type));
  return {};
}

Outcome finalize(Descriptor& of) {
  for (const Attribute& one : of.kind->attributes)
    if (one.is_required && (!of.values.contains(one.number) || of.values.at(one.number).count == 0))
      return {kBadParameter, name_of(of) + ": " + name_of(one) + " is not set"};
  if (Outcome wrong = check(of); wrong.status != kFine) return {wrong.status, name_of(of) + ": " + wrong.because};
  of.is_final = true;
  return {};
}

}  // namespace manyworlds::experiments::capture::cudnn
