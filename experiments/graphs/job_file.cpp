#include "experiments/graphs/job_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::graphs {

std::string read_job_file(const std::string& path, std::size_t max_bytes) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > max_bytes) throw core::InputError(fmt::format("is no file of at most {} bytes", max_bytes), path);
  std::string bytes = import::read_text(path, static_cast<std::size_t>(size));
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  return import::read_table_text(path, std::min(max_bytes, 64 * static_cast<std::size_t>(size) + (1u << 20)));
}

}  // namespace manyworlds::experiments::graphs
