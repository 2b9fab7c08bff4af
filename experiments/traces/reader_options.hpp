// Which formats take which options of `manyworlds program`, and what formats are called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::traces {

namespace format {
inline constexpr std::string_view kSpec = "a spec", kProgram = "a program file",
                                  kCaptured = "records of a captured program", kChakra = "Chakra traces",
                                  kSimai = "a workload of SimAI", kAicb = "a table of AICB",
                                  kGoal = "a schedule of GOAL", kMsccl = "an algorithm of MSCCL",
                                  kKineto = "traces of PyTorch's profiler", kNsys = "exports of Nsight Systems",
                                  kFlightRecorder = "dumps of PyTorch's flight recorder",
                                  kInspector = "logs of NCCL's Inspector";
}  // namespace format

/// Returns the names of the formats that take an option, "a table of AICB" or "a and b"; empty: all take it, or none.
/// An option has no dashes; of one whose values are of different formats, these follow: "collectives as-recorded".
std::string formats_with(std::string_view option);

/// Throws core::InputError at `path`, a file of `format`, for the first of `given` that is of other formats alone;
/// never where `format` is empty, of a file that is of none.
void check_options(std::string_view format, const std::vector<std::string>& given, const std::string& path);

}  // namespace manyworlds::experiments::traces
