// The backend (graph) API of cuDNN: a plan is recorded with its operations where it is made final, and its executions
// by its number. After the cuDNN documentation, "Backend API".
#include <algorithm>
#include <cstring>

#include "experiments/capture/cudnn/engines.hpp"
#include "experiments/capture/cudnn/handle.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

Descriptor* descriptor_of(void* handle) {
  return handle == nullptr ? nullptr : static_cast<DescriptorHandle*>(handle)->descriptor.get();
}

Outcome null_descriptor() {
  return {kNullPointer, "the descriptor is null"};
}

/// Writes the operations of a plan that is final.
void record_plan(Descriptor& plan) {
  const std::lock_guard lock(session().mutex);
  plan.plan = session().next_plan++;
  Line line("cudnnBackendFinalize");
  line.number("plan", plan.plan);
  describe(line, graph_of(*graph_of_plan(plan)));
  recorded(line);
}

/// What a variant pack has: pointers by the ids of tensors.
struct Pack {
  std::vector<std::int64_t> ids;
  std::vector<const void*> pointers;
  const void* workspace = nullptr;

  const void* of(std::int64_t id) const {
    const auto found = std::find(ids.begin(), ids.end(), id);
    return found == ids.end() ? nullptr : pointers[static_cast<std::size_t>(found - ids.begin())];
  }
};

std::vector<const void*> pointers_of(const Descriptor& of, int attribute) {
  const auto found = of.values.find(attribute);
  if (found == of.values.end()) return {};
  std::vector<const void*> all(static_cast<std::size_t>(found->second.count));
  if (!all.empty()) std::memcpy(all.data(), found->second.elements.data(), sizeof(void*) * all.size());
  return all;
}

Pack pack_of(const Descriptor& of) {
  const std::vector<const void*> workspace = pointers_of(of, attribute::kPackWorkspace);
  return {of.int64s(attribute::kPackIds), pointers_of(of, attribute::kPackPointers),
          workspace.empty() ? nullptr : workspace.front()};
}

Outcome check_execution(const void* handle, const Descriptor* plan, const Descriptor* pack) {
  if (handle == nullptr || plan == nullptr || pack == nullptr) return {kNullPointer, "an argument is null"};
  if (plan->kind->number != kind::kExecutionPlan) return {kDescriptorType, "the plan is none"};
  if (pack->kind->number != kind::kVariantPack) return {kDescriptorType, "the variant pack is none"};
  if (!plan->is_final) return {kNotFinalized, "the plan is not finalized"};
  if (!pack->is_final) return {kNotFinalized, "the variant pack is not finalized"};
  return {};
}

/// The pointers of a pack by tensor of a graph; what is wrong with them, if one is not there.
Outcome find_data(const OperationGraph& graph, const Pack& pack, std::vector<const void*>& pointers) {
  for (const GraphTensor& tensor : graph.tensors) {
    pointers.push_back(tensor.is_virtual ? nullptr : pack.of(tensor.id));
    if (!tensor.is_virtual && pointers.back() == nullptr)
      return {kBadParameter, "the variant pack has no pointer of tensor " + std::to_string(tensor.id)};
  }
  return {};
}

Status execute(void* handle, const Descriptor& plan, const Descriptor& variant_pack) {
  const OperationGraph graph = graph_of(*graph_of_plan(plan));
  const Pack pack = pack_of(variant_pack);
  std::vector<const void*> pointers;
  const Outcome outcome = find_data(graph, pack, pointers);
  if (outcome.status != kFine) return ended("cudnnBackendExecute", outcome);
  const std::lock_guard lock(session().mutex);
  Line line("cudnnBackendExecute");
  line.number("plan", plan.plan);
  describe_data(line, graph, pointers);
  line.json("workspace", place(pack.workspace));
  return recorded_on(line, handle);
}

}  // namespace

extern "C" {

Status cudnnBackendCreateDescriptor(int number, void** out) {
  const char* call = "cudnnBackendCreateDescriptor";
  if (out == nullptr) return ended(call, null_descriptor());
  const Kind* kind = kind_of(number);
  if (kind == nullptr)
    end_capture(std::string(call) + ": a descriptor of the type " + std::to_string(number) + " is not served");
  *out = new DescriptorHandle{std::make_shared<Descriptor>(Descriptor{kind, false, {}, -1})};
  return kFine;
}
Status cudnnBackendDestroyDescriptor(void* handle) {
  delete static_cast<DescriptorHandle*>(handle);
  return kFine;
}
Status cudnnBackendInitialize(void* handle) {
  Descriptor* of = descriptor_of(handle);
  if (of == nullptr) return ended("cudnnBackendInitialize", null_descriptor());
  *of = Descriptor{of->kind, false, {}, -1};
  return kFine;
}
Status cudnnBackendSetAttribute(void* handle, int attribute, int type, std::int64_t count, const void* elements) {
  Descriptor* of = descriptor_of(handle);
  return ended("cudnnBackendSetAttribute",
               of == nullptr ? null_descriptor() : set(*of, attribute, type, count, elements));
}
Status cudnnBackendGetAttribute(void* handle, int attribute, int type, std::int64_t room, std::int64_t* count,
                                void* elements) {
  const Descriptor* of = descriptor_of(handle);
  return ended("cudnnBackendGetAttribute",
               of == nullptr ? null_descriptor() : get(*of, attribute, type, room, count, elements));
}
Status cudnnBackendFinalize(void* handle) {
  Descriptor* of = descriptor_of(handle);
  const Outcome outcome = of == nullptr ? null_descriptor() : finalize(*of);
  if (outcome.status == kFine && of->kind->number == kind::kExecutionPlan) record_plan(*of);
  return ended("cudnnBackendFinalize", outcome);
}
Status cudnnBackendExecute(void* handle, void* plan, void* variant_pack) {
  const Descriptor *of = descriptor_of(plan), *pack = descriptor_of(variant_pack);
  const Outcome outcome = check_execution(handle, of, pack);
  if (outcome.status != kFine) return ended("cudnnBackendExecute", outcome);
  return execute(handle, *of, *pack);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture::cudnn
