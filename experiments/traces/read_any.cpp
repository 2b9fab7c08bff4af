#include "experiments/traces/read_any.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>

#include "core/base/error.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/goal/goal_file.hpp"
#include "experiments/kineto/read_kineto.hpp"
#include "experiments/msccl/algorithm.hpp"
#include "experiments/nccl/nccl_inspector.hpp"
#include "experiments/nccl_logs/flight_dump.hpp"
#include "experiments/nccl_logs/read_inspector.hpp"
#include "experiments/nsys/read_nsys.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/simai/collectives_file.hpp"
#include "experiments/simai/workload_file.hpp"
#include "experiments/text/gzip_file.hpp"
#include "experiments/text/text.hpp"
#include "experiments/traces/other_formats.hpp"
#include "experiments/traces/reader_options.hpp"

namespace manyworlds::experiments::traces {
namespace {

constexpr std::size_t kHeadBytes = 64u << 10;
constexpr std::size_t kMaxProgramBytes = 256u << 20;

/// Returns the first bytes of a file, which may be compressed by gzip. Throws core::InputError if it cannot be read.
std::string read_head(const std::string& path) {
  std::string head(kHeadBytes, '\0');
  head.resize(import::GzipFile(path, "a file").read(head.data(), head.size()));
  return head;
}

/// The same; nothing if it cannot be read.
std::string head_of(const std::string& path) {
  try {
    return read_head(path);
  } catch (const core::InputError&) {
    return "";
  }
}

programs::Imported read_program(const std::string& path) {
  programs::Imported imported;
  imported.programs = programs::parse_program_file(import::read_table_text(path, kMaxProgramBytes), path);
  return imported;
}

/// Reads Chakra's traces. Without a file of groups, these are of the one that write_trace_files() leaves beside traces.
programs::Imported read_chakra(const std::vector<std::string>& paths, const AnyOptions& options) {
  const std::string prefix = chakra::prefix_of(paths);
  chakra::TraceOptions told = options.chakra;
  const std::string beside = chakra::groups_path_of(prefix);
  const bool takes_beside = told.groups_path.empty() && std::filesystem::exists(beside);
  if (takes_beside) told.groups_path = beside;
  programs::Imported imported = options.astra_sim
                                    ? astra_sim::read_astra_sim(prefix, *options.astra_sim, options.as_astra_sim, told)
                                    : chakra::read_traces(prefix, told);
  if (prefix != paths.front())
    imported.account.insert(imported.account.begin(),
                            fmt::format("all traces at {}, from {} on", prefix, chakra::path_of(prefix, 0)));
  if (takes_beside) imported.account.push_back(fmt::format("groups of {}, as no --groups says others", beside));
  return imported;
}

/// A format, how its files are known, and what reads them.
struct Format {
  std::string_view name;
  bool has_file_per_rank;
  bool (*is)(const std::string& path, std::string_view head);
  programs::Imported (*read)(const std::vector<std::string>& paths, const AnyOptions& options);
};

bool is_chakra_trace(const std::string& path) {
  return path.ends_with(".et") || path.ends_with(".et.gz");
}
bool is_chakra_prefix(const std::string& path) {
  return std::filesystem::exists(path + ".0.et") || std::filesystem::exists(path + ".0.et.gz");
}

const std::array<Format, 11>& formats() {
  using Paths = std::vector<std::string>;
  static const std::array<Format, 11> all{{
      {format::kProgram, false,
       [](const std::string&, std::string_view head) { return programs::is_program_file(head); },
       [](const Paths& paths, const AnyOptions&) { return read_program(paths.front()); }},
      {format::kCaptured, true, &captured::is_captured,
       [](const Paths& paths, const AnyOptions& options) { return captured::read_captured(paths, options.captured); }},
      {format::kChakra, true,
       [](const std::string& path, std::string_view) { return is_chakra_trace(path) || is_chakra_prefix(path); },
       [](const Paths& paths, const AnyOptions& options) { return read_chakra(paths, options); }},
      {format::kSimai, false, [](const std::string&, std::string_view head) { return simai::is_workload_file(head); },
       [](const Paths& paths, const AnyOptions& options) {
         return simai::read_workload(paths.front(), options.simai);
       }},
      {format::kAicb, false, [](const std::string&, std::string_view head) { return simai::is_collectives_file(head); },
       [](const Paths& paths, const AnyOptions& options) {
         return simai::read_collectives(paths.front(), options.simai);
       }},
      {format::kGoal, false,
       [](const std::string&, std::string_view head) { return goal::is_goal_file(head) || goal::is_goal_binary(head); },
       [](const Paths& paths, const AnyOptions& options) { return goal::read_goal(paths.front(), options.goal); }},
      {format::kMsccl, false, [](const std::string&, std::string_view head) { return msccl::is_algorithm_file(head); },
       [](const Paths& paths, const AnyOptions& options) {
         return msccl::read_algorithm(paths.front(), options.msccl);
       }},
      {format::kKineto, true, [](const std::string&, std::string_view head) { return kineto::is_kineto_trace(head); },
       [](const Paths& paths, const AnyOptions& options) { return kineto::read_kineto(paths, options.profiler); }},
      {format::kNsys, true, [](const std::string&, std::string_view head) { return nsys::is_nsys_export(head); },
       [](const Paths& paths, const AnyOptions& options) { return nsys::read_nsys(paths, options.profiler); }},
      {format::kFlightRecorder, true,
       [](const std::string&, std::string_view head) { return nccl_logs::is_flight_dump(head); },
       [](const Paths& paths, const AnyOptions& options) {
         return nccl_logs::read_flight_recorder(paths, options.flight);
       }},
      {format::kInspector, true,
       [](const std::string&, std::string_view head) {
         return import::is_nccl_inspector(head) || head.find("\"p2p_perf\"") != head.npos;
       },
       [](const Paths& paths, const AnyOptions&) { return nccl_logs::read_inspector(paths); }},
  }};
  return all;
}

const Format* format_of(const std::string& path) {
  const std::string head = head_of(path);
  for (const Format& format : formats())
    if (format.is(path, head)) return &format;
  return nullptr;
}

}  // namespace

std::string_view format_name(const std::string& path) {
  const Format* format = format_of(path);
  return format == nullptr ? std::string_view() : format->name;
}

programs::Imported read_any(const std::vector<std::string>& paths, const AnyOptions& options) {
  for (const std::string& path : paths)
    if (const std::string other = other_format(path, head_of(path)); !other.empty())
      throw core::InputError(other, path);
  const Format* format = format_of(paths.front());
  if (format == nullptr) {
    if (read_head(paths.front()).empty()) throw core::InputError("is empty", paths.front());
    std::vector<std::string_view> names;
    for (const Format& one : formats()) names.push_back(one.name);
    throw core::InputError(fmt::format("is none of {}", fmt::join(names, ", ")), paths.front());
  }
  if (paths.size() > 1 && !format->has_file_per_rank)
    throw core::InputError(fmt::format("is {}, which is read alone", format->name), paths.front());
  for (const std::string& path : paths)
    if (const Format* other = format_of(path); other != nullptr && other != format)
      throw core::InputError(fmt::format("is {}, and {} is {}: files of one format are read together", other->name,
                                         paths.front(), format->name),
                             path);
  return format->read(paths, options);
}

}  // namespace manyworlds::experiments::traces
