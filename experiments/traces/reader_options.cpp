#include "experiments/traces/reader_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::experiments::traces {
namespace {

using Formats = std::vector<std::string_view>;

/// An option that not all formats take.
struct ReaderOption {
  std::string_view name;
  Formats formats;
};

const std::vector<ReaderOption>& reader_options() {
  using namespace format;
  static const Formats profilers{kKineto, kNsys};
  static const std::vector<ReaderOption> all{{"set", {kSpec}},
                                             {"assume", {kSpec}},
                                             {"experiment", {kSpec}},
                                             {"step", profilers},
                                             {"collectives", {kKineto, kNsys, kChakra}},
                                             {"collectives as-recorded", profilers},
                                             {"collectives without-waiting", profilers},
                                             {"collectives as-astra", {kChakra}},
                                             {"collectives as-astra-aware", {kChakra}},
                                             {"alike", {kKineto, kNsys, kCaptured}},
                                             {"ranks", {kSimai, kAicb, kChakra}},
                                             {"group-sizes", {kAicb}},
                                             {"groups", {kChakra, kCaptured}},
                                             {"one-at-a-time", {kChakra}},
                                             {"astra-system", {kChakra}},
                                             {"astra-network", {kChakra}},
                                             {"astra-memory", {kChakra}},
                                             {"steps", {kCaptured}},
                                             {"kernels", {kCaptured}},
                                             {"host-us", {kCaptured}},
                                             {"host-gaps", {kFlightRecorder}},
                                             {"host-traces", {kKineto}},
                                             {"overhead-ns", {kGoal}},
                                             {"eager-bytes", {kGoal}},
                                             {"calc-ns", {kGoal}},
                                             {"bytes", {kMsccl}}};
  return all;
}

/// Returns the formats that take an option; null: all take it, or none.
const Formats* formats_of(std::string_view option) {
  const auto& all = reader_options();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ReaderOption& one) { return one.name == option; });
  return found == all.end() ? nullptr : &found->formats;
}

}  // namespace

std::string formats_with(std::string_view option) {
  const Formats* formats = formats_of(option);
  if (formats == nullptr) return "";
  std::string text(formats->front());
  for (std::size_t i = 1; i < formats->size(); ++i)
    text += fmt::format("{}{}", i + 1 == formats->size() ? " and " : ", ", (*formats)[i]);
  return text;
}

void check_options(std::string_view format, const std::vector<std::string>& given, const std::string& path) {
  if (format.empty()) return;
  for (const std::string& option : given) {
    const Formats* formats = formats_of(option);
    if (formats == nullptr || std::find(formats->begin(), formats->end(), format) != formats->end()) continue;
    throw core::InputError(fmt::format("--{} is of {}, not of {}", option, formats_with(option), format), path);
  }
}

}  // namespace manyworlds::experiments::traces
