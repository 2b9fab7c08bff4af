// Files of a job, of which there may be thousands and which may be large.
#pragma once

#include <cstddef>
#include <string>

namespace manyworlds::experiments::graphs {

/// Returns the contents of a file, which may be compressed by gzip (up to 64 to 1), with buffers of the size that it
/// can have. Throws InputError if it is none, or holds more than `max_bytes`.
std::string read_job_file(const std::string& path, std::size_t max_bytes);

}  // namespace manyworlds::experiments::graphs
