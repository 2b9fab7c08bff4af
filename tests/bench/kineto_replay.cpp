// Replays traces of PyTorch's profiler as they were recorded: kineto_replay [--step N] [--account] FILE..., one file
// per rank. Prints a row of a table: operations, dependencies, what was recorded, what the replay takes, its error,
// also without the delays that nothing explains, time and memory of reading.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <istream>

#include "core/base/error.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/kineto/byte_stream.hpp"
#include "experiments/kineto/parse_trace.hpp"
#include "experiments/kineto/read_kineto.hpp"
#include "experiments/programs/timed_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::core;
using namespace manyworlds::experiments;

namespace {

/// As many GPUs on one switch as there are ranks.
step::Configuration machine(std::size_t ranks) {
  step::Configuration result;
  auto graph = std::make_shared<network::Graph>();
  for (std::size_t i = 0; i < ranks; ++i) graph->add_vertex(network::VertexKind::gpu, "gpu");
  const std::uint32_t leaf = graph->add_vertex(network::VertexKind::network_switch, "leaf");
  for (std::uint32_t i = 0; i < ranks; ++i)
    graph->add_cable(i, leaf, network::LinkKind::network, 200'000'000'000, 700'000);
  result.graph = graph;
  result.gpus_per_node = 1;
  result.gpu.matrix_tflops = 300;
  result.gpu.memory_gib = 80;
  result.gpu.memory_gb_per_s = 2000;
  result.gpu.compute_units = 100;
  result.gpu.clock_ghz = 1;
  result.gpu.sustained_rate = 1;
  result.gpu.scale_up_gb_per_s = 200;
  return result;
}

double step_us(const programs::StreamPrograms& programs) {
  step::Configuration configuration = machine(programs.ranks.program_of_rank.size());
  configuration.programs = std::make_shared<const workload::GivenPrograms>(
      programs::timed_on(programs, configuration.gpu, nullptr, "trace").programs);
  configuration.transport.fidelity = network::Fidelity::analytic;
  step::SimulationContext context;
  step::IsolatedResults results;
  return static_cast<double>(context.run(context.compile(configuration, step::Ranks::all), results).step_ps) * 1e-6;
}

/// Returns the step without the delays that nothing in a trace explains.
double undelayed_us(programs::StreamPrograms programs) {
  for (programs::RankProgram& program : programs.programs)
    for (programs::StreamOp& op : program.ops)
      if (program.streams[op.stream].name.starts_with("delays") && programs.names[op.name] == "not known")
        op.work = programs::HostWork{};
  return step_us(programs);
}

/// Returns when each operation of a program without collectives starts, in microseconds: an oracle of few lines.
std::vector<double> starts_of(const programs::RankProgram& program) {
  std::vector<double> starts, ends, stream_end(program.streams.size());
  for (const programs::StreamOp& op : program.ops) {
    double start = stream_end[op.stream], us = 0;
    for (const std::uint32_t before : op.after) start = std::max(start, ends[before]);
    if (const auto* kernel = std::get_if<programs::KernelWork>(&op.work)) us = *kernel->measured_us;
    if (const auto* copy = std::get_if<programs::CopyWork>(&op.work)) us = *copy->measured_us;
    if (const auto* host = std::get_if<programs::HostWork>(&op.work)) us = host->us;
    starts.push_back(start);
    ends.push_back(stream_end[op.stream] = start + us);
  }
  return starts;
}

/// Returns by how many microseconds the operations of the device start otherwise than recorded, ascending.
std::vector<double> start_errors(const programs::RankProgram& program, const std::string& file) {
  kineto::ByteStream bytes(file);
  std::istream text(&bytes);
  const profiler::RankTrace trace = kineto::parse_trace(text, file);
  std::vector<std::vector<double>> recorded(trace.streams.size());
  for (const profiler::DeviceOp& op : trace.ops) recorded[op.stream].push_back(static_cast<double>(op.start) * 1e-3);
  std::erase_if(recorded, [](const std::vector<double>& stream) { return stream.empty(); });
  std::vector<std::size_t> next(recorded.size());
  const std::vector<double> starts = starts_of(program);
  std::vector<double> errors;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const std::size_t stream = program.ops[i].stream;  // those of the device come first, in the order of the trace
    if (program.streams[stream].kind == programs::StreamKind::device)
      errors.push_back(std::abs(starts[i] - recorded.at(stream).at(next[stream]++)));
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

double megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void replay(const std::vector<std::string>& files, const profiler::ReadOptions& options, bool tells) {
  const auto begun = std::chrono::steady_clock::now();
  const programs::Imported imported = kineto::read_kineto(files, options);
  const std::chrono::duration<double> read = std::chrono::steady_clock::now() - begun;
  const double megabytes_read = megabytes();
  std::size_t ops = 0;
  for (const programs::RankProgram& program : imported.programs.programs) ops += program.ops.size();
  const double us = step_us(imported.programs);
  if (tells)
    for (const std::string& line : imported.account) fmt::print("{}\n", line);
  fmt::print("| {} | {} | {} | {} | {} | {:.3f} | {:.3f} | {:+.2f} % | {:+.2f} % | {:.1f} s | {:.0f} MB |\n",
             std::filesystem::path(files[0]).filename().string(), ops, imported.dependencies.exact,
             imported.dependencies.inferred, imported.dependencies.contradicted, imported.recorded_us * 1e-3, us * 1e-3,
             100 * (us / imported.recorded_us - 1), 100 * (undelayed_us(imported.programs) / imported.recorded_us - 1),
             read.count(), megabytes_read);
  if (options.step || options.alike || files.size() > 1) return;
  const std::vector<double> errors = start_errors(imported.programs.programs[0], files[0]);
  fmt::print("  starts of {} operations are off by {:.1f} us in the median, {:.1f} us of 99 %, {:.1f} us at most\n",
             errors.size(), errors[errors.size() / 2], errors[errors.size() * 99 / 100], errors.back());
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> files;
  profiler::ReadOptions options;
  options.collectives = profiler::Collectives::as_recorded;
  bool tells = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--step" && i + 1 < count)
      options.step = std::stoll(words[++i]);
    else if (word == "--alike")
      options.alike = true, options.collectives = profiler::Collectives::simulated;
    else if (word == "--account")
      tells = true;
    else
      files.push_back(word);
  }
  try {
    replay(files, options, tells);
  } catch (const core::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
