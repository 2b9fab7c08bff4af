#include "experiments/chakra/trace_paths.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::chakra {
namespace {

using core::InputError;

constexpr std::string_view kEnding = ".et";

/// Returns the prefix and the rank in the name of a trace; nothing, if it is named otherwise.
std::optional<std::pair<std::string_view, std::uint32_t>> parts_of(std::string_view name) {
  if (!name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const std::string_view digits = name.substr(dot + 1);
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool is_rank = error == std::errc() && end == digits.data() + digits.size() && digits == std::to_string(rank);
  if (!is_rank) return std::nullopt;
  return std::pair(name.substr(0, dot), rank);
}

/// Returns the first rank above `rank` that has a trace at the prefix.
std::optional<std::uint32_t> next_rank(const std::string& prefix, std::uint32_t rank) {
  const std::filesystem::path path(prefix);
  const std::string name = path.filename().string();
  std::optional<std::uint32_t> next;
  std::error_code error;
  std::filesystem::directory_iterator file(path.has_parent_path() ? path.parent_path() : ".", error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::string other = file->path().filename().string();
    const auto parts = parts_of(other);
    if (parts && parts->first == name && parts->second > rank && (!next || parts->second < *next)) next = parts->second;
  }
  return next;
}

}  // namespace

std::string path_of(const std::string& prefix, std::uint32_t rank) {
  return fmt::format("{}.{}{}", prefix, rank, kEnding);
}

std::string groups_path_of(const std::string& prefix) {
  return prefix + ".groups.json";
}

std::uint32_t count_traces(const std::string& prefix) {
  std::uint32_t files = 0;
  std::error_code error;
  while (files < programs::kMaxRanks && std::filesystem::exists(path_of(prefix, files), error)) ++files;
  if (files == 0)
    throw InputError(fmt::format("has no trace {}; ranks are PREFIX.0.et, PREFIX.1.et, ...", path_of(prefix, 0)),
                     prefix);
  if (const auto next = next_rank(prefix, files))
    throw InputError(fmt::format("has no trace {}, but {}: one of each rank must be there", path_of(prefix, files),
                                 path_of(prefix, *next)),
                     prefix);
  return files;
}

std::string prefix_of(const std::vector<std::string>& paths) {
  const std::string& first = paths.front();
  if (paths.size() == 1 && (!parts_of(first) || std::filesystem::exists(path_of(first, 0)))) return first;
  std::string prefix;
  std::set<std::uint32_t> ranks;
  for (const std::string& path : paths) {
    const auto parts = parts_of(path);
    if (!parts) throw InputError("is named as no trace of Chakra is: PREFIX.0.et, PREFIX.1.et, ...", path);
    if (ranks.empty()) prefix = parts->first;
    if (parts->first != prefix) throw InputError(fmt::format("is no trace of {}, as {} is", prefix, first), path);
    ranks.insert(parts->second);
  }
  const std::uint32_t files = count_traces(prefix);
  const bool is_first = *ranks.rbegin() == 0;
  if (*ranks.rbegin() >= files)
    throw InputError(fmt::format("is not there; {} has traces of {} ranks", prefix, files),
                     path_of(prefix, *ranks.rbegin()));
  if (!is_first && ranks.size() < files)
    throw InputError(fmt::format("is one of {} traces: give their prefix, {}", files, prefix), first);
  return prefix;
}

}  // namespace manyworlds::experiments::chakra
