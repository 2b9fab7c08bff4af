// Any text as each of the tables that users give: measured kernels, logs of nccl-tests, flows and loads of experts.
#include "core/base/error.hpp"
#include "experiments/import/flows.hpp"
#include "experiments/import/measured_kernels.hpp"
#include "experiments/import/measured_routing.hpp"
#include "experiments/import/nccl_tests.hpp"
#include "experiments/import/schedule_file.hpp"

using namespace manyworlds;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    experiments::import::parse_measured_kernels(text, "kernels.csv");
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_nccl_tests(text, "nccl.log");
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_flows(text, "flows.csv", 64);
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_measured_routing(text, "routing.csv");
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_schedule(text, "schedule.csv");
  } catch (const core::InputError&) {
  }
  return 0;
}
