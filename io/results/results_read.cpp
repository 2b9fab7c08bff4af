// Reads a results file. The seal is checked before HDF5 sees a byte, since HDF5 trusts its input; and since anybody can
// make a matching seal, HDF5 reads the bytes in a sandboxed process.
#include "core/base/error.hpp"
#include "io/log/file.hpp"
#include "io/log/sealed.hpp"
#include "io/process/sandboxed_process.hpp"
#include "io/results/results.hpp"
#include "io/results/results_image.hpp"
#include "io/results/results_stream.hpp"

namespace manyworlds::io {

namespace {

/// HDF5 needs memory for a few copies of the image, a slab of a column, and the unpacked data.
SandboxedProcess::Limits limits_for(std::uint64_t image_bytes) {
  const std::uint64_t tables = MemoryBudget(image_bytes).bytes();
  return {tables + (std::uint64_t{128} << 20), std::chrono::seconds(30 + (image_bytes >> 20)), tables};
}

Results read_image(std::string_view image, const std::string& path) {
  const SandboxedProcess::Limits limits = limits_for(image.size());
  SandboxedProcess reading(limits, [&](const SandboxedProcess::Send& send) { send_image(image, send); });
  ResultsReceiver received(image.size());
  while (const auto message = reading.next()) {
    received.take(*message);
    if (const auto version = received.format_version();
        version.value_or(kResultsFormatVersion) != kResultsFormatVersion)
      throw core::InputError(fmt::format("{}: results of format version {}; this build reads version {}", path,
                                         *version, kResultsFormatVersion));
  }
  if (const SandboxedProcess::ExitReport exit_report = reading.exit_report(); !exit_report.succeeded)
    throw InvalidResults(fmt::format("HDF5 {} reading it ({})", exit_report.failure, exit_report.detail));
  return received.finish();
}

}  // namespace

Results read_results(const std::filesystem::path& path) {
  const std::string sealed = read_file(path);
  const auto image = unseal(sealed);
  if (!image)
    throw core::InputError(
        fmt::format("{}: not a results file of manyworlds, or truncated or changed after it was "
                    "written (its seal does not fit)",
                    path.string()));
  const auto input_error = [&](std::string_view why) {
    return core::InputError(fmt::format("{}: not a results file of manyworlds: {}", path.string(), why));
  };
  try {
    return read_image(*image, path.string());
  } catch (const InvalidResults& refusal) {
    throw input_error(refusal.what());
  } catch (const core::InternalError&) {  // the messages are malformed: HDF5 has corrupted the memory of the process
    throw input_error("HDF5 failed while reading it");
  } catch (const std::bad_alloc&) {
    throw core::InputError(fmt::format("{}: holds more than this machine's memory does", path.string()));
  }
}

}  // namespace manyworlds::io
