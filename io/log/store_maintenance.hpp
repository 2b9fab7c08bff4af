// Maintenance of a store, over all builds that wrote to it: listing, verification and eviction. Whole segments
// are evicted, since a later run of the same kind asks for everything that one run computed. A record that is still
// used keeps the rest of its segment, at most StoreOptions::segment_bytes; that costs space, never correctness.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "io/log/keyed_payload.hpp"
#include "io/log/record_log.hpp"

namespace manyworlds::io {

/// What one build keeps in a store.
struct StoredBuild {
  std::string fingerprint;  // "" for segments whose header cannot be read
  std::uint64_t segments = 0, records = 0, bytes = 0;
  std::time_t last_used = 0;  // seconds since 1970
};
/// Returns the builds, most recently used first. Payloads are not read. A missing directory holds nothing. Throws
/// IoError.
std::vector<StoredBuild> stored_builds(const std::filesystem::path& directory);

struct StoreCheck {
  struct Finding {
    std::string path;
    SkippedRegions skipped;
    InvalidRecords invalid_records;
    std::string reason;  // why the file could not be read at all, or ""
  };
  std::uint64_t segments = 0, records = 0, bytes = 0;  // records: intact ones
  std::vector<Finding> damaged;                        // bytes that were changed, or lost by a disk
  std::vector<Finding> torn;                           // intact but for an unfinished record at the end
};
/// Reads every record and checks every checksum. For segments of build `fingerprint` it also checks that each payload
/// belongs to its key; the payloads of other builds are opaque. Changes nothing. Throws IoError where a directory
/// cannot be listed.
StoreCheck verify_store(const std::filesystem::path& directory, std::string_view fingerprint);

struct PruneResult {
  std::uint64_t segments = 0, bytes = 0;            // evicted
  std::uint64_t unusable = 0;                       // unusable files, removed in addition
  std::uint64_t kept_segments = 0, kept_bytes = 0;  // what the store holds now
  std::uint64_t unremovable = 0;  // segments that exceed the limit, but are being written or are not ours to remove
};
/// Removes segments of any build, least recently used first, until at most `limit_bytes` are left; never one whose
/// writer lives. Processes that read a removed segment are not disturbed. Throws IoError where nothing can be removed.
PruneResult prune_store(const std::filesystem::path& directory, std::uint64_t limit_bytes);

struct PrunedStore {
  PruneResult results, components;
};
/// Prunes a store and its components_directory(), which gets an eighth of the limit at most, and no more than
/// kMaxComponentBytes.
PrunedStore prune_with_components(const std::filesystem::path& directory, std::uint64_t limit_bytes);

}  // namespace manyworlds::io
