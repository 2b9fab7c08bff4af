// Reads a results file back. The seal is checked before HDF5 sees a byte, since HDF5 trusts what it reads; and as
// anybody can make a seal that fits, HDF5 sees the bytes in a process of its own.
#include "core/base/error.hpp"
#include "io/log/file.hpp"
#include "io/log/sealed.hpp"
#include "io/process/confined.hpp"
#include "io/results/results.hpp"
#include "io/results/results_image.hpp"
#include "io/results/results_stream.hpp"

namespace manyworlds::io {

namespace {

/// HDF5 holds the image a few times, a slab of a column, and what it unpacks.
Confined::Limits limits_for(std::uint64_t image_bytes) {
  const std::uint64_t tables = ReadingBudget(image_bytes).bytes();
  return {tables + (std::uint64_t{128} << 20), std::chrono::seconds(30 + (image_bytes >> 20)), tables};
}

Results read_image(std::string_view image, const std::string& path) {
  const Confined::Limits limits = limits_for(image.size());
  Confined reading(limits, [&](const Confined::Send& send) { send_image(image, send); });
  ResultsReceiver received(image.size());
  while (const auto message = reading.next()) {
    received.take(*message);
    if (const auto version = received.format_version();
        version.value_or(kResultsFormatVersion) != kResultsFormatVersion)
      throw core::InputError(fmt::format("{}: results of format version {}; this build reads version {}", path,
                                         *version, kResultsFormatVersion));
  }
  if (const Confined::End end = reading.end(); !end.well)
    throw NoResults(fmt::format("HDF5 {} reading it ({})", end.what, end.detail));
  return received.finish();
}

}  // namespace

Results read_results(const std::filesystem::path& path) {
  const std::string sealed = read_file(path);
  const auto image = unseal(sealed);
  if (!image)
    throw core::InputError(
        fmt::format("{}: not a results file of manyworlds, or cut short or changed since it was "
                    "written (its seal does not fit)",
                    path.string()));
  const auto refuse = [&](std::string_view why) {
    return core::InputError(fmt::format("{}: not a results file of manyworlds: {}", path.string(), why));
  };
  try {
    return read_image(*image, path.string());
  } catch (const NoResults& refusal) {
    throw refuse(refusal.what());
  } catch (const core::InternalError&) {  // no work of ours: HDF5 has written where it should not
    throw refuse("HDF5 went wrong reading it");
  } catch (const std::bad_alloc&) {
    throw core::InputError(fmt::format("{}: holds more than this machine's memory does", path.string()));
  }
}

}  // namespace manyworlds::io
