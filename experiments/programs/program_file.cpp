#include "experiments/programs/program_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/programs/check_communication.hpp"
#include "experiments/programs/choice.hpp"
#include "experiments/programs/kernel_shapes.hpp"
#include "experiments/programs/names.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/programs/words.hpp"
#include "experiments/text/json.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::programs {
namespace {

using core::InputError;
using core::collective::Kind;
using core::workload::DimensionKind;
using core::workload::StepPart;
using import::JsonView;
using nlohmann::json;

constexpr double kMaxUs = 1e9;
constexpr std::array<Kind, 6> kCollectives{Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                                           Kind::all_to_all, Kind::broadcast,  Kind::reduce};

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const auto& info : core::workload::kStepParts) names.emplace_back(info.name());
  return names;
}

StepPart part_of(const JsonView& value) {
  static const std::vector<std::string> names = part_names();
  return static_cast<StepPart>(choice(value, "part", names));
}

std::vector<std::uint32_t> ranks_of(const JsonView& value) {
  std::vector<std::uint32_t> ranks;
  value.for_each(
      [&](const JsonView& one) { ranks.push_back(static_cast<std::uint32_t>(one.whole(0, kMaxRanks - 1))); });
  return ranks;
}

/// Reads the lines of a file into programs.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  void line(std::string_view text, int number) {
    line_ = number;
    if (!has_header_ && text.find(kHeader) == text.npos)
      throw InputError(
          fmt::format("is no program file, whose first line has '{}'; of a trace, or another simulator's workload, "
                      "`manyworlds program FILE --to FILE.jsonl` makes one",
                      kHeader),
          name_, number);
    try {
      const json value = json::parse(text);
      if (!value.is_object()) throw InputError("every line must be an object");
      if (has_header_) ++lines_;
      read(value);
    } catch (const json::exception&) {
      throw InputError(
          fmt::format("bad JSON, where a whole object must stand in one line: {}", std::string(text.substr(0, 60))),
          name_, number);
    } catch (const InputError& error) {
      if (error.located()) throw;
      throw InputError(error.what(), name_, number);
    }
  }

  const std::string& gpu() const { return result_.gpu; }

  /// Returns what a line adds to a program of programs that were read.
  StreamOp operation(const json& line, const StreamPrograms& programs, const RankProgram& program, std::string& name) {
    has_header_ = true;
    result_.ranks = programs.ranks;
    for (const auto& dimension : result_.ranks.dimensions) dimensions_.emplace(dimension.name, dimensions_.size());
    result_.programs.emplace_back().name = program.name;
    for (const StreamInfo& stream : program.streams) add_stream(stream.name, stream.kind);
    read(line);
    if (result_.programs.size() != 1 || result_.programs[0].ops.size() != 1)
      throw InputError("must be an operation: a kernel, copy, host, collective, send or receive");
    name = result_.names[result_.programs[0].ops[0].name];
    return result_.programs[0].ops[0];
  }

  StreamPrograms finish() {
    if (!has_header_) throw InputError(fmt::format("is empty; the first line must have '{}'", kHeader), name_);
    if (expected_lines_ && *expected_lines_ != lines_)
      throw InputError(fmt::format("has {} lines behind the first, whose 'lines' is {}: it was cut, or 'lines' must "
                                   "follow what was changed",
                                   lines_, *expected_lines_),
                       name_);
    if (result_.programs.empty()) throw InputError("has no program", name_);
    end_program();
    for (std::size_t rank = 0; rank < program_of_rank_.size(); ++rank)
      result_.ranks.program_of_rank.push_back(program_of_rank_[rank]);
    check_groups();
    core::workload::check_ranks(result_.ranks, result_.programs.size(), name_);
    check_gpus();
    check_communication(result_, name_, lines_of_groups_);
    return std::move(result_);
  }

 private:
  /// A member that tells what a line is, and what reads the line.
  struct LineKind {
    const char* member;
    void (Reader::*read)(const JsonView&);
    std::vector<std::string> others;  // members that the line may also have
  };
  static const std::vector<LineKind>& kinds() {
    static const std::vector<LineKind> all = [] {
      const std::vector<std::string> op{"stream", "after", "name", "began"};
      const auto with = [&](std::vector<std::string> more) {
        more.insert(more.end(), op.begin(), op.end());
        return more;
      };
      return std::vector<LineKind>{
          {kHeader,
           &Reader::header,
           {"lines", "name", "origin", "gpu", "tokens_per_step", "notes", "slowdown", "synchronised", "gpu_of_rank"}},
          {"dimension", &Reader::dimension, {"kind", "part"}},
          {"groups", &Reader::groups, {"ranks"}},
          {"program", &Reader::program, {"ranks", "streams", "host_streams"}},
          {"kernel", &Reader::kernel,
           with({"us", "gemm", "dtype", "attention", "bytes", "flops", "part", "measured_at", "scales_with"})},
          {"copy", &Reader::copy, with({"us", "bytes"})},
          {"host", &Reader::host, with({"us"})},
          {"collective", &Reader::collective, with({"in", "bytes", "counts", "by_source", "root"})},
          {"send", &Reader::send, with({"bytes"})},
          {"receive", &Reader::receive, with({"bytes"})},
          {"record", &Reader::record, {"stream"}},
          {"wait", &Reader::wait, {"stream"}},
          {"allocate", &Reader::allocate, {}},
          {"free", &Reader::free, {}}};
    }();
    return all;
  }

  void read(const json& value) {
    for (const LineKind& kind : kinds()) {
      if (!value.contains(kind.member)) continue;
      for (const auto& [member, ignored] : value.items())
        if (member != kind.member && std::find(kind.others.begin(), kind.others.end(), member) == kind.others.end())
          throw InputError(
              fmt::format("a line of '{}' has no member '{}'{}", kind.member, member, suggestion(member, kind.others)));
      if (has_header_ == (kind.member == kHeader))
        throw InputError(fmt::format("'{}' must be in the first line, and in no other", kHeader));
      (this->*kind.read)(JsonView(value, "the line"));
      return;
    }
    std::vector<std::string> members;
    for (const LineKind& kind : kinds()) members.emplace_back(kind.member);
    throw InputError(fmt::format("a line must have one of {}", fmt::join(members, ", ")));
  }

  void header(const JsonView& line) {
    has_header_ = true;
    if (const std::int64_t version = line.at(kHeader).whole(); version != kVersion)
      throw InputError(fmt::format("'{}' must be {}, not {}", kHeader, kVersion, version));
    if (const auto value = line.find("lines")) expected_lines_ = value->whole(0);
    if (const auto value = line.find("name")) result_.name = value->text();
    if (const auto value = line.find("origin")) result_.origin = value->text();
    if (const auto value = line.find("gpu")) result_.gpu = value->text();
    if (const auto value = line.find("tokens_per_step")) result_.tokens_per_step = value->number(0);
    if (const auto value = line.find("notes"))
      value->for_each([&](const JsonView& note) { result_.notes.push_back(note.text()); });
    if (const auto value = line.find("slowdown")) slowdown(*value);
    if (const auto value = line.find("synchronised")) result_.is_synchronised = value->boolean();
    if (const auto value = line.find("gpu_of_rank")) result_.ranks.gpu_of_rank = ranks_of(*value);
  }

  void slowdown(const JsonView& value) {
    using core::workload::SlowedKernels;
    result_.slowed = static_cast<SlowedKernels>(
        choice(value.at("by"), "by", std::array<const char*, 3>{"calibrated", "none", "units"}));
    if (result_.slowed != SlowedKernels::by_units) return;
    result_.units_to_move = value.at("to_move").whole(0, 100'000);
    result_.units_to_reduce = value.at("to_reduce").whole(0, 100'000);
  }

  void dimension(const JsonView& line) {
    core::workload::Dimension dimension;
    dimension.name = line.at("dimension").text();
    if (!dimensions_.emplace(dimension.name, result_.ranks.dimensions.size()).second)
      throw InputError(fmt::format("dimension '{}' is declared twice", dimension.name));
    if (!result_.programs.empty()) throw InputError("dimensions are declared before programs");
    if (dimensions_.size() > 10'000) throw InputError("more than 10,000 dimensions");
    if (const auto kind = line.find("kind"))
      dimension.kind = static_cast<DimensionKind>(choice(*kind, "kind", kDimensionKinds));
    if (const auto part = line.find("part")) dimension.exposed = part_of(*part);
    result_.ranks.dimensions.push_back(std::move(dimension));
  }

  void groups(const JsonView& line) {
    const std::uint32_t dimension = dimension_of(line.at("groups").text());
    line.at("ranks").for_each([&](const JsonView& ranks) {
      result_.ranks.groups.push_back({dimension, ranks_of(ranks)});
      lines_of_groups_.push_back(line_);
    });
  }

  std::uint32_t dimension_of(const std::string& name) const {
    const auto found = dimensions_.find(name);
    if (found != dimensions_.end()) return static_cast<std::uint32_t>(found->second);
    std::vector<std::string> known;
    for (const auto& [one, number] : dimensions_) known.push_back(one);
    throw InputError(fmt::format("no dimension '{}' was declared{}", name, suggestion(name, known)));
  }

  void program(const JsonView& line) {
    end_program();
    const auto number = static_cast<std::uint32_t>(result_.programs.size());
    RankProgram& program = result_.programs.emplace_back();
    program.name = line.at("program").text();
    for (const std::uint32_t rank : parse_ranks(line.at("ranks").text())) {
      if (rank >= program_of_rank_.size()) program_of_rank_.resize(rank + 1, UINT32_MAX);
      if (program_of_rank_[rank] != UINT32_MAX) throw InputError(fmt::format("rank {} has two programs", rank));
      program_of_rank_[rank] = number;
    }
    for (const auto& [member, kind] : {std::pair("streams", StreamKind::device), {"host_streams", StreamKind::host}})
      if (const auto streams = line.find(member))
        streams->for_each([&, kind = kind](const JsonView& name) { add_stream(name.text(), kind); });
  }

  void add_stream(const std::string& name, StreamKind kind) {
    std::vector<StreamInfo>& streams = result_.programs.back().streams;
    if (!streams_.emplace(name, streams.size()).second) throw InputError(fmt::format("stream '{}' stands twice", name));
    if (streams.size() >= 40'000) throw InputError("more than 40,000 streams");
    streams.push_back({name, kind});
  }

  void end_program() {
    streams_.clear(), events_.clear(), waiting_.clear(), last_on_.clear();
    allocated_ = 0;
  }

  RankProgram& open_program() {
    if (result_.programs.empty()) throw InputError("an operation must come after the line of its program");
    return result_.programs.back();
  }

  std::uint32_t stream_of(const JsonView& line) {
    open_program();
    const std::string& name = line.at("stream").text();
    const auto found = streams_.find(name);
    if (found == streams_.end())
      throw InputError(fmt::format("program '{}' has no stream '{}'", result_.programs.back().name, name));
    return static_cast<std::uint32_t>(found->second);
  }

  /// Adds an operation; `name` is what it is called where the line says nothing else.
  StreamOp& add(const JsonView& line, const std::string& name, bool is_host = false) {
    const std::uint32_t stream = stream_of(line);
    RankProgram& program = open_program();
    if ((program.streams[stream].kind == StreamKind::host) != is_host)
      throw InputError(fmt::format("stream '{}' is {}", program.streams[stream].name,
                                   is_host ? "no host stream" : "a host stream, on which only 'host' lines run"));
    const auto number = static_cast<std::uint32_t>(program.ops.size());
    StreamOp& op = program.ops.emplace_back();
    op.stream = stream;
    const auto own = line.find("name");
    op.name = names_(own ? own->text() : name);
    op.began_us = us_of(line, "began").value_or(-1);
    if (const auto after = line.find("after"))
      after->for_each([&](const JsonView& one) {
        const std::int64_t before = one.whole();
        if (before >= number)
          throw InputError(
              fmt::format("operation {} of its program comes after {}, which is not before it", number, before));
        op.after.push_back(static_cast<std::uint32_t>(before));
      });
    std::vector<std::uint32_t>& waits = waiting_[stream];
    op.after.insert(op.after.end(), waits.begin(), waits.end());
    waits.clear();
    std::sort(op.after.begin(), op.after.end());
    op.after.erase(std::unique(op.after.begin(), op.after.end()), op.after.end());
    last_on_[stream] = number;
    return op;
  }

  static std::optional<double> us_of(const JsonView& line, const char* member = "us") {
    const auto value = line.find(member);
    if (!value) return std::nullopt;
    const double us = value->number(0);
    if (us > kMaxUs) throw InputError(fmt::format("'{}' must be at most {:.0f}", member, kMaxUs));
    return us;
  }
  static std::int64_t bytes_of(const JsonView& line, std::int64_t least = 0) {
    const auto value = line.find("bytes");
    if (!value && least == 0) return 0;
    return line.at("bytes").whole(least, std::int64_t{1} << 50);
  }

  void kernel(const JsonView& line) {
    KernelWork work;
    work.measured_us = us_of(line);
    work.shape = shape_of(line);
    if (const auto flops = line.find("flops")) work.flops = flops->whole(0);
    if (const auto part = line.find("part")) work.part = part_of(*part);
    if (const auto with = line.find("scales_with"))
      work.scales_with = static_cast<ScalesWith>(choice(*with, "scales_with", kScalesWith));
    if (const auto shape = line.find("measured_at")) measured_at(*shape, work);
    add(line, line.at("kernel").text()).work = work;
  }

  static void measured_at(const JsonView& value, KernelWork& work) {
    const KernelShape shape = shape_of(value);
    if (!shape.is_known()) throw InputError("'measured_at' must have 'gemm', 'attention' or 'bytes'");
    if (!work.measured_us || !work.shape.is_known())
      throw InputError("'measured_at' is the shape of 'us', beside the 'gemm', 'attention' or 'bytes' of another one");
    work.measured_at = shape;
  }

  void copy(const JsonView& line) {
    CopyWork work;
    work.direction = static_cast<CopyDirection>(choice(line.at("copy"), "copy", kDirections));
    work.measured_us = us_of(line);
    work.bytes = bytes_of(line);
    if (!work.measured_us && work.bytes == 0) throw InputError("a copy must have 'us' or 'bytes'");
    add(line, line.at("copy").text()).work = work;
  }

  void host(const JsonView& line) {
    const HostWork work{us_of(line).value_or(0)};
    add(line, line.at("host").text(), true).work = work;
  }

  void collective(const JsonView& line) {
    Communication work;
    std::vector<std::string> kinds;
    for (const Kind kind : kCollectives) kinds.emplace_back(core::collective::name_of(kind));
    work.kind = kCollectives[choice(line.at("collective"), "collective", kinds)];
    work.dimension = dimension_of(line.at("in").text());
    if (result_.ranks.dimensions[work.dimension].kind != DimensionKind::groups)
      throw InputError(fmt::format("dimension '{}' has pairs, and no collectives", line.at("in").text()));
    work.bytes = bytes_of(line, 1);
    if (const auto counts = line.find("counts"))
      counts->for_each([&](const JsonView& one) { work.split.bytes.push_back(one.whole()); });
    if (const auto by_source = line.find("by_source")) work.split.by_source = by_source->boolean();
    if (const auto root = line.find("root")) set_root(work, root->whole(0, kMaxRanks - 1));
    if (work.split.bytes.empty()) work.split.by_source = false;
    check_split(work);
    add(line, line.at("collective").text()).work = work;
  }

  void set_root(Communication& work, std::int64_t root) {
    if (work.kind != Kind::broadcast && work.kind != Kind::reduce)
      throw InputError("only broadcast and reduce have a 'root'");
    if (root == 0) return;
    work.split.bytes.assign(members_of(work.dimension), 0);
    if (static_cast<std::size_t>(root) >= work.split.bytes.size())
      throw InputError(fmt::format("'root' must be below {}, the members of its group", work.split.bytes.size()));
    work.split.bytes[static_cast<std::size_t>(root)] = work.bytes;
  }

  /// Returns the number of ranks in the groups of a dimension, which must be equal for collectives that tell members
  /// apart.
  std::size_t members_of(std::uint32_t dimension) const {
    std::set<std::size_t> sizes;
    for (const auto& group : result_.ranks.groups)
      if (group.dimension == dimension) sizes.insert(group.ranks.size());
    if (sizes.size() != 1) throw InputError("'root' and 'counts' need groups of one size in their dimension");
    return *sizes.begin();
  }

  void check_split(const Communication& work) const {
    if (work.split.bytes.empty() || work.kind == Kind::broadcast || work.kind == Kind::reduce) return;
    if (work.kind != Kind::all_to_all) throw InputError("only all_to_all has 'counts'");
    core::Int128 sum = 0;
    for (const std::int64_t bytes : work.split.bytes) sum += bytes;
    if (work.split.bytes.size() != members_of(work.dimension) || sum != work.bytes)
      throw InputError("'counts' must have the bytes of each member of the group, with 'bytes' as their sum");
  }

  void send(const JsonView& line) { transfer(line, "send", false); }
  void receive(const JsonView& line) { transfer(line, "receive", true); }
  void transfer(const JsonView& line, const char* member, bool receives) {
    Communication work;
    work.kind = Kind::send;
    work.dimension = dimension_of(line.at(member).text());
    work.receives = receives;
    if (result_.ranks.dimensions[work.dimension].kind == DimensionKind::groups)
      throw InputError(fmt::format("dimension '{}' has groups, in which nobody sends", line.at(member).text()));
    work.bytes = bytes_of(line, 1);
    add(line, member).work = work;
  }

  void record(const JsonView& line) {
    const std::uint32_t stream = stream_of(line);
    std::vector<std::uint32_t> before = waiting_[stream];
    if (const auto last = last_on_.find(stream); last != last_on_.end()) before.push_back(last->second);
    events_[line.at("record").whole()] = std::move(before);
  }
  void wait(const JsonView& line) {
    const std::uint32_t stream = stream_of(line);
    const auto event = events_.find(line.at("wait").whole());
    if (event == events_.end()) throw InputError(fmt::format("event {} was not recorded", line.at("wait").whole()));
    waiting_[stream].insert(waiting_[stream].end(), event->second.begin(), event->second.end());
  }

  void allocate(const JsonView& line) { change_memory(line.at("allocate").whole(1, std::int64_t{1} << 50)); }
  void free(const JsonView& line) { change_memory(-line.at("free").whole(1, std::int64_t{1} << 50)); }
  void change_memory(std::int64_t bytes) {
    RankProgram& program = open_program();
    allocated_ += bytes;
    if (allocated_ < 0) throw InputError("more memory is freed than was allocated");
    if (allocated_ > std::int64_t{1} << 50) throw InputError("more than 2^50 bytes are allocated");
    program.allocations.push_back({static_cast<std::uint32_t>(program.ops.size()), bytes});
  }

  void check_groups() const {
    for (std::size_t i = 0; i < result_.ranks.groups.size(); ++i)
      for (const std::uint32_t rank : result_.ranks.groups[i].ranks)
        if (rank >= program_of_rank_.size())
          throw InputError(fmt::format("rank {} of a group has no program: ranks are 0 to {}", rank,
                                       static_cast<std::int64_t>(program_of_rank_.size()) - 1),
                           name_, lines_of_groups_[i]);
  }

  void check_gpus() const {
    const auto& gpus = result_.ranks.gpu_of_rank;
    if (gpus.empty()) return;
    std::set<std::uint32_t> distinct(gpus.begin(), gpus.end());
    if (gpus.size() != result_.ranks.program_of_rank.size() || distinct.size() != gpus.size())
      throw InputError("'gpu_of_rank' must have another GPU for each rank", name_);
  }

  const std::string& name_;
  int line_ = 0;
  bool has_header_ = false;
  std::int64_t lines_ = 0;                      // behind the header
  std::optional<std::int64_t> expected_lines_;  // as the header says
  StreamPrograms result_;
  Names names_{result_.names};
  std::map<std::string, std::size_t> dimensions_, streams_;
  std::vector<std::uint32_t> program_of_rank_;
  std::vector<int> lines_of_groups_;
  std::map<std::int64_t, std::vector<std::uint32_t>> events_;    // the operations that are waited for
  std::map<std::uint32_t, std::vector<std::uint32_t>> waiting_;  // by stream: what its next operation waits for
  std::map<std::uint32_t, std::uint32_t> last_on_;               // by stream
  std::int64_t allocated_ = 0;
};

}  // namespace

bool is_program_file(std::string_view text) {
  const std::size_t line = std::min(text.find('\n'), std::size_t{4096});
  return text.starts_with('{') && text.substr(0, line).find(fmt::format("\"{}\"", kHeader)) != std::string_view::npos;
}

std::string measured_gpu(std::string_view text, const std::string& name) {
  Reader reader(name);
  reader.line(text.substr(0, text.find('\n')), 1);
  return reader.gpu();
}

StreamOp operation_of(const nlohmann::json& line, StreamPrograms& programs, const RankProgram& program) {
  std::string name;
  StreamOp op = Reader("").operation(line, programs, program, name);
  op.name = Names(programs.names)(name);
  return op;
}

StreamPrograms parse_program_file(std::string_view text, const std::string& name) {
  Reader reader(name);
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = import::trimmed(text.substr(begin, end - begin), " \t\r");
    ++number;
    if (!line.empty()) reader.line(line, number);
    begin = end + 1;
  }
  return reader.finish();
}

}  // namespace manyworlds::experiments::programs
