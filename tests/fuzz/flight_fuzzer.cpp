// Any bytes as the dump of a rank of PyTorch's flight recorder, a pickle or JSON, and as those of two ranks that are
// the same: a refusal on one line, or programs and an account.
#include "experiments/nccl_logs/read_flight_recorder.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  nccl_logs::is_flight_dump(bytes);
  try {
    const nccl_logs::FlightDump dump = nccl_logs::parse_flight_dump(bytes, "dump");
    for (const std::uint32_t ranks : {1u, 2u, 3u}) {
      std::vector<nccl_logs::FlightDump> dumps(ranks, dump);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) dumps[rank].rank = rank;
      nccl_logs::FlightOptions options;
      options.host_gaps = size % 2 == 0;
      const programs::Imported imported = nccl_logs::import_flight_dumps(dumps, options);
      fuzz::require(!imported.account.empty());
      if (imported.refused.empty())
        fuzz::require_programs(imported.programs);
      else
        fuzz::require(imported.programs.programs.empty() && imported.refused.find('\n') == std::string::npos);
    }
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "dump");
  }
  return 0;
}
