// Two processes serve the same job when they built the same tasks: this number says so.
#pragma once

#include "farm/job.hpp"

namespace manyworlds::farm {

inline std::uint64_t job_signature(const std::vector<Task>& tasks) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a over 64-bit words
  const auto mix = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3ULL, hash ^= hash >> 29; };
  mix(tasks.size());
  for (const Task& task : tasks) {
    for (const auto word : task.key.digest) mix(word);
    mix(task.inputs.size());
    for (const auto input : task.inputs) mix(input);
  }
  return hash;
}

}  // namespace manyworlds::farm
