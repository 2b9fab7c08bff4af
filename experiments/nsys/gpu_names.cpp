#include "experiments/nsys/gpu_names.hpp"

#include <algorithm>
#include <cctype>

namespace manyworlds::experiments::nsys {
namespace {

constexpr std::int64_t kMaxClock = 4'000'000'000'000'000'000;

}  // namespace

GpuNames::GpuNames(const Database& database) {
  if (database.has("TARGET_INFO_GPU")) {
    Rows rows = database.rows("TARGET_INFO_GPU", {{"id"}, {"name"}});
    while (rows.next()) names_[rows.whole(0, 0)] = std::string(rows.text(1).value_or(""));
  }
  if (database.has("TARGET_INFO_CUDA_DEVICE")) {
    Rows rows = database.rows("TARGET_INFO_CUDA_DEVICE", {{"gpuId"}, {"cudaId"}, {"pid", false}});
    while (rows.next()) of_processes_[{rows.whole(2, -1), rows.whole(1, 0)}] = rows.whole(0, 0);
  }
}

std::string GpuNames::name_of(std::int64_t process, std::int64_t device) const {
  for (const std::int64_t pid : {process, std::int64_t{-1}}) {
    const auto gpu = of_processes_.find({pid, device});
    if (gpu == of_processes_.end()) continue;
    const auto name = names_.find(gpu->second);
    if (name != names_.end()) return name->second;
  }
  if (const auto name = names_.find(device); name != names_.end()) return name->second;
  std::set<std::string> all;
  for (const auto& [id, name] : names_) all.insert(name);
  return all.size() == 1 ? *all.begin() : std::string();
}

MemoryKinds::MemoryKinds(const Database& database) {
  constexpr const char* kKinds = "ENUM_CUDA_MEM_KIND";
  if (!database.has(kKinds)) return;
  Rows rows = database.rows(kKinds, {{"id"}, {"name", false}, {"label", false}});
  while (rows.next())
    for (const int column : {1, 2}) {
      std::string text(rows.text(column).value_or(""));
      for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (text.find("pageable") != std::string::npos) pageable_.insert(rows.whole(0, 0));
    }
}

std::string name_of_copy(std::int64_t copy_kind, bool is_pageable) {
  const std::string host = is_pageable ? "Pageable" : "Pinned";
  switch (copy_kind) {  // CUpti_ActivityMemcpyKind
    case 1:
    case 3:
    case 11:  // of unified memory
      return "Memcpy HtoD (" + host + " -> Device)";
    case 2:
    case 4:
    case 12:
      return "Memcpy DtoH (Device -> " + host + ")";
    case 10:
      return "Memcpy PtoP (Device -> Device)";
    default:
      return "Memcpy DtoD (Device -> Device)";
  }
}

std::int64_t clock_base(const Database& database) {
  constexpr const char* kStart = "TARGET_INFO_SESSION_START_TIME";
  if (!database.has(kStart, "utcEpochNs")) return 0;
  Rows rows = database.rows(kStart, {{"utcEpochNs"}});
  const std::int64_t ns = rows.next() ? rows.whole(0, 0) : 0;
  return ns > 0 && ns < kMaxClock ? ns : 0;
}

}  // namespace manyworlds::experiments::nsys
