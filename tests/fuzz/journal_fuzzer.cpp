// Any bytes as a journal: replay ends, needs no more memory than the file has bytes, accounts for every byte, and gives
// each key once, whatever its visitor refuses.
#include <set>

#include "core/base/error.hpp"
#include "io/log/journal.hpp"
#include "tests/fuzz/record_file_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_record_file(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  constexpr const char* kName = "000001-fuzz-1.journal";
  folder.put(kName, {reinterpret_cast<const char*>(data), size});
  try {
    io::RecordReader reader(folder.path / kName);
    std::uint64_t bytes = reader.readable() ? 16 + reader.fingerprint().size() + 8 : 0, records = 0;
    while (const auto record = reader.next()) {
      bytes += 72 + record->payload.size();
      ++records;
    }
    fuzz::require(bytes + reader.skipped().bytes == size);
    std::set<std::pair<std::uint32_t, core::sharing::Key>> seen;
    std::uint64_t refused = 0;
    const auto replayed = io::replay_journal(folder.path, "build-1", [&](const io::Record& record) {
      if (record.payload.size() % 5 == 3) return ++refused, false;
      return fuzz::require(seen.emplace(record.kind, record.key).second), true;
    });
    std::uint64_t invalid_records = 0;
    for (const auto& damage : replayed.damage) invalid_records += damage.invalid_records.count;
    fuzz::require(invalid_records >= refused);
    fuzz::require(replayed.records == seen.size() && replayed.records + replayed.repeated + invalid_records <= records);
    fuzz::require(replayed.damage.empty() == replayed.describe_damage().empty());
  } catch (const core::InputError&) {  // another format version
  }
  return 0;
}
