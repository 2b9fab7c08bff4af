// What the names in a trace stand for: categories of events, calls of the runtime, directions of copies, GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::profiler {

enum class Category : std::uint8_t { other, kernel, copy, set, call, sync, annotation, op };

/// Returns what events of a category are; names of older profilers too.
Category category_of(std::string_view name);

/// Returns what a call of CUDA's or HIP's runtime or driver does; nothing if it neither launches nor waits, so that its
/// time is the host's own.
std::optional<CallKind> call_kind(std::string_view name);

/// Returns the direction in the name of a copy, such as `Memcpy DtoH (Device -> Pageable)`.
programs::CopyDirection copy_direction(std::string_view name);

/// Returns whether a kernel is one of NCCL's or RCCL's.
bool is_collective_kernel(std::string_view name);

/// Returns whether a kernel is one of DeepEP's that communicate (github.com/deepseek-ai/DeepEP, csrc/kernels; also of
/// its hybrid-ep branch): dispatch, combine, and how ranks tell each other that these begin.
bool is_expert_exchange_kernel(std::string_view name);

/// Returns the catalog name of the GPU that a driver calls `name`; empty if it is not unmistakable.
std::string catalog_gpu(std::string_view name);

/// Returns the N of `ProfilerStep#N`; nothing if the text is another.
std::optional<std::int64_t> step_number(std::string_view name);

}  // namespace manyworlds::experiments::profiler
