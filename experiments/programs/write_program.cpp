// Writes the file of stream programs.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <ostream>
#include <sstream>

#include "core/collective/algorithms/registry.hpp"
#include "experiments/programs/kernel_shapes.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/programs/words.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::programs {
namespace {

using core::workload::StepPart;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string list_of(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

/// Returns microseconds, to a picosecond, without zeros at the end.
std::string us_text(double us) {
  std::string text = fmt::format("{:.6f}", us);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

class Writer {
 public:
  Writer(std::ostream& file, const StreamPrograms& programs) : file_(file), programs_(programs) {}

  void write() {
    header();
    for (const core::workload::Dimension& dimension : programs_.ranks.dimensions)
      line(R"("dimension":{},"kind":"{}","part":"{}")", quoted(dimension.name),
           kDimensionKinds[static_cast<std::size_t>(dimension.kind)], core::workload::name_of(dimension.exposed));
    for (const core::workload::GivenGroup& group : programs_.ranks.groups)
      line(R"("groups":{},"ranks":[{}])", quoted(dimension(group.dimension)), list_of(group.ranks));
    for (std::uint32_t number = 0; number < programs_.programs.size(); ++number) program(number);
  }

 private:
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    line_ = '{';
    fmt::format_to(std::back_inserter(line_), format, std::forward<Arguments>(arguments)...);
    file_ << line_ << "}\n";
  }
  const std::string& dimension(std::uint32_t number) const { return programs_.ranks.dimensions[number].name; }

  std::size_t lines_behind_header() const {
    std::size_t lines = programs_.ranks.dimensions.size() + programs_.ranks.groups.size();
    for (const RankProgram& program : programs_.programs) lines += 1 + program.allocations.size() + program.ops.size();
    return lines;
  }

  void header() {
    std::string more = fmt::format(R"(,"lines":{})", lines_behind_header());
    const auto text_member = [&](const char* member, const std::string& value) {
      if (!value.empty()) more += fmt::format(R"(,"{}":{})", member, quoted(value));
    };
    text_member("name", programs_.name);
    text_member("origin", programs_.origin);
    text_member("gpu", programs_.gpu);
    if (programs_.tokens_per_step > 0) more += fmt::format(R"(,"tokens_per_step":{})", programs_.tokens_per_step);
    if (!programs_.notes.empty()) more += fmt::format(R"(,"notes":{})", nlohmann::json(programs_.notes).dump());
    using core::workload::SlowedKernels;
    if (programs_.slowed == SlowedKernels::none) more += R"(,"slowdown":{"by":"none"})";
    if (programs_.slowed == SlowedKernels::by_units)
      more += fmt::format(R"(,"slowdown":{{"by":"units","to_move":{},"to_reduce":{}}})", programs_.units_to_move,
                          programs_.units_to_reduce);
    if (!programs_.is_synchronised) more += R"(,"synchronised":false)";
    if (!programs_.ranks.gpu_of_rank.empty())
      more += fmt::format(R"(,"gpu_of_rank":{})", list_of(programs_.ranks.gpu_of_rank));
    line(R"("{}":{}{})", kHeader, kVersion, more);
  }

  void program(std::uint32_t number) {
    const RankProgram& program = programs_.programs[number];
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < programs_.ranks.program_of_rank.size(); ++rank)
      if (programs_.ranks.program_of_rank[rank] == number) ranks.push_back(rank);
    std::string streams[2];
    for (const StreamInfo& stream : program.streams) {
      std::string& of_kind = streams[static_cast<std::size_t>(stream.kind)];
      of_kind += (of_kind.empty() ? "" : ",") + quoted(stream.name);
    }
    line(R"("program":{},"ranks":"{}","streams":[{}],"host_streams":[{}])", quoted(program.name), ranks_text(ranks),
         streams[0], streams[1]);
    auto allocation = program.allocations.begin();
    const auto allocations_before = [&](std::uint32_t op) {
      for (; allocation != program.allocations.end() && allocation->op <= op; ++allocation)
        allocation->bytes > 0 ? line(R"("allocate":{})", allocation->bytes) : line(R"("free":{})", -allocation->bytes);
    };
    for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
      allocations_before(op);
      operation(program, program.ops[op]);
    }
    allocations_before(UINT32_MAX);
  }

  void operation(const RankProgram& program, const StreamOp& op) {
    more_ = fmt::format(R"(,"stream":{})", quoted(program.streams[op.stream].name));
    if (!op.after.empty()) more_ += fmt::format(R"(,"after":{})", list_of(op.after));
    if (op.began_us >= 0) more_ += fmt::format(R"(,"began":{})", us_text(op.began_us));
    std::visit([&](const auto& work) { write(op, work); }, op.work);
  }

  const std::string& name_of(const StreamOp& op) const { return programs_.names[op.name]; }
  /// Adds the name, if it is another than that which the reader takes for a line without one.
  void add_name(const StreamOp& op, const std::string& usual) {
    if (name_of(op) != usual) more_ += fmt::format(R"(,"name":{})", quoted(name_of(op)));
  }

  void write(const StreamOp& op, const KernelWork& work) {
    if (work.measured_us) more_ += fmt::format(R"(,"us":{})", us_text(*work.measured_us));
    const std::string shape = shape_text(work.shape);
    if (!shape.empty()) more_ += "," + shape;
    if (work.measured_at) more_ += fmt::format(R"(,"measured_at":{{{}}})", shape_text(*work.measured_at));
    if (work.flops > 0) more_ += fmt::format(R"(,"flops":{})", work.flops);
    if (work.scales_with)
      more_ += fmt::format(R"(,"scales_with":"{}")", kScalesWith[static_cast<std::size_t>(*work.scales_with)]);
    if (work.part != StepPart::kernels) more_ += fmt::format(R"(,"part":"{}")", core::workload::name_of(work.part));
    line(R"("kernel":{}{})", quoted(name_of(op)), more_);
  }
  void write(const StreamOp& op, const CopyWork& work) {
    const char* direction = kDirections[static_cast<std::size_t>(work.direction)];
    add_name(op, direction);
    if (work.measured_us) more_ += fmt::format(R"(,"us":{})", us_text(*work.measured_us));
    if (work.bytes > 0) more_ += fmt::format(R"(,"bytes":{})", work.bytes);
    line(R"("copy":"{}"{})", direction, more_);
  }
  void write(const StreamOp& op, const HostWork& work) {
    line(R"("host":{},"us":{}{})", quoted(name_of(op)), us_text(work.us), more_);
  }
  void write(const StreamOp& op, const Communication& work) {
    if (work.kind == core::collective::Kind::send) {
      const char* end = work.receives ? "receive" : "send";
      add_name(op, end);
      return line(R"("{}":{},"bytes":{}{})", end, quoted(dimension(work.dimension)), work.bytes, more_);
    }
    const std::string kind = core::collective::name_of(work.kind);
    add_name(op, kind);
    if (!work.split.bytes.empty()) {
      if (work.kind == core::collective::Kind::all_to_all)
        more_ += fmt::format(R"(,"counts":[{}])", fmt::join(work.split.bytes, ","));
      else
        more_ += fmt::format(R"(,"root":{})", std::find(work.split.bytes.begin(), work.split.bytes.end(), work.bytes) -
                                                  work.split.bytes.begin());
      if (work.split.by_source) more_ += R"(,"by_source":true)";
    }
    line(R"("collective":"{}","in":{},"bytes":{}{})", kind, quoted(dimension(work.dimension)), work.bytes, more_);
  }

  std::ostream& file_;
  const StreamPrograms& programs_;
  std::string line_, more_;
};

}  // namespace

std::string program_file_text(const StreamPrograms& programs) {
  std::ostringstream text;
  write_program_file(text, programs);
  return std::move(text).str();
}

void write_program_file(std::ostream& file, const StreamPrograms& programs) {
  Writer(file, programs).write();
}

}  // namespace manyworlds::experiments::programs
