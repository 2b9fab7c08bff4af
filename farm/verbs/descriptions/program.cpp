// `manyworlds program FILE`: what a program file, a trace or the experiment of a spec has its ranks do; and writes it.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "core/base/plural.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/step/layout/as_given.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/chakra/write_traces.hpp"
#include "experiments/edits/edited.hpp"
#include "experiments/edits/replicas.hpp"
#include "experiments/goal/write_goal.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/programs/timed_programs.hpp"
#include "experiments/text/text.hpp"
#include "experiments/traces/read_any.hpp"
#include "experiments/traces/reader_options.hpp"
#include "farm/cli/options/one_experiment.hpp"
#include "farm/cli/options/output_file.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/verbs/descriptions/reader_options.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::commands {
namespace {

using namespace experiments::programs;
using Json = nlohmann::ordered_json;

/// What operations of one kind amount to, in one program.
struct Sum {
  std::int64_t count = 0, bytes = 0;
  double us = 0;
};

std::string kind_of(const StreamOp& op) {
  if (std::holds_alternative<KernelWork>(op.work)) return "kernel";
  if (std::holds_alternative<CopyWork>(op.work)) return "copy";
  if (std::holds_alternative<HostWork>(op.work)) return "host";
  const auto& call = std::get<Communication>(op.work);
  if (call.kind == core::collective::Kind::send) return call.receives ? "receive" : "send";
  return core::collective::name_of(call.kind);
}

Sum sum_of(const StreamOp& op) {
  if (const auto* kernel = std::get_if<KernelWork>(&op.work))
    return {1, kernel->shape.bytes, kernel->measured_us.value_or(0)};
  if (const auto* copy = std::get_if<CopyWork>(&op.work)) return {1, copy->bytes, copy->measured_us.value_or(0)};
  if (const auto* host = std::get_if<HostWork>(&op.work)) return {1, 0, host->us};
  return {1, std::get<Communication>(op.work).bytes, 0};
}

void add(Sum& to, const Sum& other) {
  to.count += other.count, to.bytes += other.bytes, to.us += other.us;
}

/// By kind, and by dimension where it has one.
std::map<std::pair<std::string, std::string>, Sum> sums_of(const StreamPrograms& programs, const RankProgram& program) {
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const StreamOp& op : program.ops) {
    const auto* call = std::get_if<Communication>(&op.work);
    add(sums[{kind_of(op), call ? programs.ranks.dimensions[call->dimension].name : ""}], sum_of(op));
  }
  return sums;
}

/// Kernels or work of hosts of one name.
struct NamedSum {
  std::string kind, name;
  Sum sum;
};

/// By kind, kernels before hosts, and by name; those that take longest first.
std::vector<NamedSum> sums_by_name(const StreamPrograms& programs, const RankProgram& program) {
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const StreamOp& op : program.ops)
    if (std::holds_alternative<KernelWork>(op.work) || std::holds_alternative<HostWork>(op.work))
      add(sums[{kind_of(op), programs.names[op.name]}], sum_of(op));
  std::vector<NamedSum> all;
  for (const auto& [what, sum] : sums) all.push_back({what.first, what.second, sum});
  std::stable_sort(all.begin(), all.end(), [](const NamedSum& one, const NamedSum& other) {
    return std::tuple(one.kind != "kernel", -one.sum.us, -one.sum.count) <
           std::tuple(other.kind != "kernel", -other.sum.us, -other.sum.count);
  });
  return all;
}

std::int64_t peak_of(const RankProgram& program) {
  std::int64_t bytes = 0, peak = 0;
  for (const Allocation& one : program.allocations) peak = std::max(peak, bytes += one.bytes);
  return peak;
}

Json as_json(const Imported& imported, bool by_name) {
  const StreamPrograms& programs = imported.programs;
  Json all{{"name", programs.name},
           {"origin", programs.origin},
           {"gpu", programs.gpu},
           {"notes", programs.notes},
           {"ranks", programs.ranks.program_of_rank.size()},
           {"programs", Json::array()}};
  const std::vector<std::int64_t> ranks =
      experiments::programs::ranks_by_program(programs.ranks.program_of_rank, programs.programs.size());
  for (std::size_t i = 0; i < programs.programs.size(); ++i) {
    const RankProgram& program = programs.programs[i];
    Json one{{"name", program.name},
             {"ranks", ranks[i]},
             {"operations", program.ops.size()},
             {"streams", program.streams.size()},
             {"peak_bytes", peak_of(program)},
             {"sums", Json::array()}};
    for (const auto& [what, sum] : sums_of(programs, program))
      one["sums"].push_back({{"kind", what.first},
                             {"dimension", what.second},
                             {"count", sum.count},
                             {"bytes", sum.bytes},
                             {"us", sum.us}});
    if (by_name) {
      one["by_name"] = Json::array();
      for (const NamedSum& named : sums_by_name(programs, program))
        one["by_name"].push_back({{"kind", named.kind},
                                  {"name", named.name},
                                  {"count", named.sum.count},
                                  {"bytes", named.sum.bytes},
                                  {"us", named.sum.us}});
    }
    all["programs"].push_back(std::move(one));
  }
  all["dependencies"] = {{"exact", imported.dependencies.exact},
                         {"inferred", imported.dependencies.inferred},
                         {"contradicted", imported.dependencies.contradicted}};
  all["account"] = imported.account;
  if (!imported.refused.empty()) all["refused"] = imported.refused;
  return all;
}

/// Returns the time and the bytes of a sum, as far as it has them.
std::string amount_text(const Sum& sum) {
  std::string text;
  if (sum.us > 0) text += "  " + io::with_si_prefix(sum.us * 1e-6, "s");
  if (sum.bytes > 0) text += "  " + io::with_si_prefix(static_cast<double>(sum.bytes), "B");
  return text;
}

std::string as_text(const StreamPrograms& programs, const std::string& source, bool by_name) {
  std::string text = fmt::format("{}: {}\n", programs.name.empty() ? "programs" : programs.name, source);
  const auto line = [&](const char* title, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<16}{}\n", title, value);
  };
  line("origin", programs.origin);
  line("measured on", programs.gpu);
  line("ranks",
       fmt::format("{}, {} distinct programs", programs.ranks.program_of_rank.size(), programs.programs.size()));
  for (const std::string& note : programs.notes) line("assumed", note);
  const std::vector<std::int64_t> ranks =
      experiments::programs::ranks_by_program(programs.ranks.program_of_rank, programs.programs.size());
  for (std::size_t i = 0; i < programs.programs.size(); ++i) {
    const RankProgram& program = programs.programs[i];
    text +=
        fmt::format("{}: {} {}, {} operations on {} streams{}\n", program.name, ranks[i],
                    core::plural(ranks[i], "rank"), program.ops.size(), program.streams.size(),
                    peak_of(program) > 0
                        ? fmt::format(", {} at most", io::with_si_prefix(static_cast<double>(peak_of(program)), "B"))
                        : "");
    for (const auto& [what, sum] : sums_of(programs, program)) {
      const auto& [kind, dimension] = what;
      text += fmt::format("  {:<16}{:<16}{:>8}{}\n", kind, dimension, sum.count, amount_text(sum));
    }
    if (!by_name) continue;
    for (const NamedSum& named : sums_by_name(programs, program))
      text += fmt::format("  {:<8}{:>8}{:<22}  {}\n", named.kind, named.sum.count, amount_text(named.sum),
                          core::line_text(named.name));
  }
  return text;
}

/// Returns the programs of the experiment in a spec.
StreamPrograms programs_of_spec(const cxxopts::ParseResult& parsed) {
  const experiments::Sweep sweep = one_experiment(parsed, {});
  experiments::GraphCache graphs;
  const core::step::Configuration configuration = configure(sweep.experiments.front(), graphs);
  if (configuration.programs) throw core::InputError("has given programs itself: name their file instead", sweep.name);
  if (configuration.is_mixed()) throw core::InputError("programs are of machines of one kind", sweep.name);
  core::step::SimulationContext context;
  const core::step::CompiledStep compiled = context.compile(configuration);
  StreamPrograms programs = as_stream_programs(core::step::as_given(configuration, compiled.layout()), sweep.name);
  programs.gpu = sweep.experiments.front().settings.text("cluster.gpu.name");
  programs.origin = "an experiment of Manyworlds";
  return programs;
}

/// Makes the changes that the command line asks for, and says what they did.
void change(Imported& imported, const cxxopts::ParseResult& parsed) {
  if (parsed.count("replicas") > 0) {
    const auto replicas = parsed["replicas"].as<std::uint32_t>();
    if (replicas == 0) throw core::InputError("must be 1 or more", "--replicas");
    for (std::string& note : experiments::edits::add_replicas(imported.programs, replicas, imported.programs.name))
      imported.programs.notes.push_back(std::move(note));
  }
  if (parsed.count("edits") == 0) return;
  const auto path = parsed["edits"].as<std::string>();
  const auto edits = experiments::edits::parse_edits(experiments::import::read_text(path), path);
  for (const std::string& line : experiments::edits::make_edits(imported.programs, edits))
    imported.programs.notes.push_back(fmt::format("edited by {}", line));
  imported.recorded_us = 0;  // of what there was before
}

/// Refuses what needs programs where there are none.
void check_programs(const Imported& imported, const cxxopts::ParseResult& parsed, const std::string& source) {
  if (imported.refused.empty()) return;
  for (const char* option : {"to", "goal", "chakra", "edits", "replicas"})
    if (parsed.count(option) > 0)
      throw core::InputError(fmt::format("has no programs for --{}: {}", option, imported.refused), source);
}

/// Files of a format that were written, and what they do not say.
struct Written {
  std::string format, files;
  std::vector<std::string> account;
};

std::vector<Written> write_programs(const StreamPrograms& programs, const cxxopts::ParseResult& parsed) {
  std::vector<Written> all;
  const auto size = [](std::uint64_t bytes) { return io::with_si_prefix(static_cast<double>(bytes), "B"); };
  if (parsed.count("to") > 0) {
    const auto path = parsed["to"].as<std::string>();
    const auto bytes = write_output(path, [&](std::ostream& file) { write_program_file(file, programs); });
    all.push_back({"a program file", fmt::format("{}, {}", path, size(bytes)), {}});
  }
  if (parsed.count("goal") > 0) {
    const auto path = parsed["goal"].as<std::string>();
    std::vector<std::string> account;
    const auto bytes = write_output(
        path, [&](std::ostream& file) { account = experiments::goal::write_goal(file, programs, programs.name); });
    all.push_back({"GOAL", fmt::format("{}, {}", path, size(bytes)), std::move(account)});
  }
  if (parsed.count("chakra") > 0) {
    const auto prefix = parsed["chakra"].as<std::string>();
    namespace chakra = experiments::chakra;
    std::vector<std::string> account = chakra::write_trace_files(programs, prefix);
    const std::size_t ranks = programs.ranks.program_of_rank.size();
    all.push_back({"Chakra",
                   fmt::format("{}{}, and {}", chakra::path_of(prefix, 0),
                               ranks > 1 ? " to " + chakra::path_of(prefix, static_cast<std::uint32_t>(ranks - 1)) : "",
                               chakra::groups_path_of(prefix)),
                   std::move(account)});
  }
  return all;
}

std::string written_text(const std::vector<Written>& written) {
  std::string text;
  for (const Written& one : written) {
    text += fmt::format("{:<16}{}\n", "wrote", core::line_text(one.files));
    for (const std::string& line : one.account)
      text += fmt::format("{:<16}{}\n", fmt::format("as {}", one.format), line);
  }
  return text;
}

Json written_json(const std::vector<Written>& written) {
  Json all = Json::array();
  for (const Written& one : written)
    all.push_back({{"as", one.format}, {"files", one.files}, {"account", one.account}});
  return all;
}

/// Throws InputError for a GPU that the catalog does not have; `file` names it.
void check_gpu(const std::string& gpu, const std::string& file, const std::string& catalog) {
  if (gpu.empty()) return;
  experiments::import::Node at;
  at.file = std::make_shared<const std::string>(file);
  experiments::Catalog(catalog).find("gpus", gpu, at);
}

std::string account_text(const Imported& imported) {
  std::string text;
  const Dependencies& found = imported.dependencies;
  if (found != Dependencies())
    text += fmt::format("{:<16}{} exact, {} inferred, {} contradicted by times\n", "dependencies", found.exact,
                        found.inferred, found.contradicted);
  if (imported.recorded_us > 0)
    text += fmt::format("{:<16}{}\n", "recorded", io::with_si_prefix(imported.recorded_us * 1e-6, "s"));
  for (const std::string& line : imported.account) text += fmt::format("{:<16}{}\n", "read", line);
  if (!imported.refused.empty()) text += fmt::format("{:<16}{}\n", "no programs", imported.refused);
  return text;
}

int run_program(const Invocation& invocation) {
  cxxopts::Options options("manyworlds program",
                           "What the ranks of a program file, a trace, or the experiment in a spec do "
                           "(docs/programs.md).");
  add_experiment_options(options);
  options.add_options()("files", "more files: the traces of further ranks", cxxopts::value<std::vector<std::string>>())(
      "to", "writes a program file; .gz is compressed", cxxopts::value<std::string>(), "FILE")(
      "chakra", "writes traces of Chakra, PREFIX.0.et and on", cxxopts::value<std::string>(), "PREFIX")(
      "goal", "writes a schedule of GOAL; .gz is compressed", cxxopts::value<std::string>(), "FILE")(
      "replicas", "lets all ranks run N times, as replicas of data parallelism", cxxopts::value<std::uint32_t>(), "N")(
      "edits", "makes the edits of a file (docs/edits.md)", cxxopts::value<std::string>(), "FILE")(
      "by-name", "sums kernels and the work of hosts by name too, those that take longest first")("json", "as JSON");
  add_reader_options(options);
  options.parse_positional({"spec", "files"});
  options.positional_help("FILE...");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  std::vector<std::string> paths{required(*parsed, "spec", "FILE")};
  if (parsed->count("files") > 0)
    for (const std::string& path : (*parsed)["files"].as<std::vector<std::string>>()) paths.push_back(path);
  const bool is_spec = paths.front().ends_with(".yaml") || paths.front().ends_with(".yml");
  namespace traces = experiments::traces;
  traces::check_options(is_spec ? traces::format::kSpec : traces::format_name(paths.front()), given_options(*parsed),
                        paths.front());
  const traces::AnyOptions reader = reader_options(*parsed);
  if (is_spec && paths.size() > 1)
    throw core::InputError(fmt::format("is {}, which is read alone", traces::format::kSpec), paths.front());
  Imported imported;
  if (is_spec) {
    imported.programs = programs_of_spec(*parsed);
  } else {
    imported = traces::read_any(paths, reader);
    const std::string& table = reader.captured.kernels_path;
    check_gpu(imported.programs.gpu, table.empty() ? paths.front() : table, (*parsed)["catalog"].as<std::string>());
  }
  check_programs(imported, *parsed, paths.front());
  change(imported, *parsed);
  const bool by_name = parsed->count("by-name") > 0;
  const std::vector<Written> written = write_programs(imported.programs, *parsed);
  if (parsed->count("json") > 0) {
    Json all = as_json(imported, by_name);
    all["written"] = written_json(written);
    std::cout << all.dump(2) << '\n';
  } else {
    std::cout << as_text(imported.programs, paths.front(), by_name) << account_text(imported) << written_text(written);
  }
  return kExitDone;
}

}  // namespace

Command program_command() {
  return {.name = "program", .summary = "what a program file has ranks do; an experiment as one", .run = run_program};
}

}  // namespace manyworlds::farm::commands
