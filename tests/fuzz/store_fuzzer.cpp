// Any bytes as a segment of a store: it opens, gives only what stands whole in the segment, and keeps what is put.
#include "core/base/error.hpp"
#include "io/log/store.hpp"
#include "io/log/store_maintenance.hpp"
#include "tests/fuzz/record_file_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_record_file(data, size, max_size, seed);
}

namespace {

std::vector<io::Record> whole_records(const std::filesystem::path& path) {
  std::vector<io::Record> records;
  io::RecordReader reader(path);
  while (auto record = reader.next()) records.push_back(std::move(*record));
  return records;
}

void get_and_put(io::Store& store, const std::vector<io::Record>& records) {
  for (const auto& record : records) {
    if (const auto found = store.get(record.key)) {
      bool written = false;
      for (const auto& other : records)  // in the segment, or put for a record of the same key that was none of its own
        written |= other.key == record.key &&
                   (other.payload == io::keyed_payload(record.key, *found) || other.payload == *found);
      fuzz::require(written);
    }
    store.put(record.key, record.payload);
    fuzz::require(store.get(record.key).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  const std::filesystem::path part = std::filesystem::path("build-1") / "fuzz-1-0.segment";
  std::filesystem::remove_all(folder.path / "build-1");
  folder.put(part, {reinterpret_cast<const char*>(data), size});
  try {
    const auto records = whole_records(folder.path / part);
    io::Store store(folder.path, "build-1");
    get_and_put(store, records);
    store.close();
    const io::StoreCheck check = io::verify_store(folder.path, "build-1");
    std::uint64_t whole = check.records;
    for (const auto& damaged : check.damaged) whole += damaged.invalid_records.count;
    const std::uint64_t kept = io::stored_builds(folder.path).size();
    fuzz::require(whole >= records.size() && kept >= 1);
    fuzz::require(io::prune_store(folder.path, 0).kept_bytes == 0);
  } catch (const core::InputError&) {  // another format version
  }
  return 0;
}
