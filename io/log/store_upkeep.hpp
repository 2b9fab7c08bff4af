// Upkeep of a whole store, over all builds that wrote there: what it holds, whether it is whole, and eviction.
// A segment is the unit of eviction: what one run computed is what the next of its kind asks for, all of it. A record
// that is still used keeps the rest of its segment, at most StoreOptions::segment_bytes; that costs room, never an
// answer.
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
  std::string fingerprint;  // "" of segments whose header cannot be read
  std::uint64_t segments = 0, records = 0, bytes = 0;
  std::time_t last_used = 0;  // seconds since 1970
};
/// The builds, last used first. Payloads are not read. A directory that is not there holds nothing. Throws IoError.
std::vector<StoredBuild> stored_builds(const std::filesystem::path& directory);

struct StoreCheck {
  struct Finding {
    std::string path;
    Skipped skipped;
    Misfits misfits;
    std::string reason;  // why the file could not be read at all, or ""
  };
  std::uint64_t segments = 0, records = 0, bytes = 0;  // records: whole ones
  std::vector<Finding> damaged;                        // bytes that somebody changed, or a disk lost
  std::vector<Finding> torn;                           // whole but for an unfinished record at the end
};
/// Reads every record and checks every checksum, and of the segments of build `fingerprint` that what a record holds is
/// its key's: what other builds keep in their payloads is their affair. Changes nothing. Throws IoError where a
/// directory cannot be listed.
StoreCheck verify_store(const std::filesystem::path& directory, std::string_view fingerprint);

struct Pruned {
  std::uint64_t segments = 0, bytes = 0;            // evicted
  std::uint64_t leftovers = 0;                      // files that nobody could ever have used, removed besides
  std::uint64_t kept_segments = 0, kept_bytes = 0;  // what the store holds now
  std::uint64_t left = 0;  // segments that would have gone, but somebody writes them, or they are not ours to remove
};
/// Removes segments, least recently used first and whatever build's, until no more than `limit_bytes` are left; never
/// one whose writer lives. Who reads a segment that goes is not disturbed. Throws IoError where nothing can be removed.
Pruned prune_store(const std::filesystem::path& directory, std::uint64_t limit_bytes);

}  // namespace manyworlds::io
