// Parses the XML of an algorithm, and checks what one GPU alone shows: numbers, names, buffers, waits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include "core/base/error.hpp"
#include "experiments/msccl/algorithm.hpp"
#include "experiments/text/text.hpp"
#include "experiments/text/xml.hpp"

namespace manyworlds::experiments::msccl {
namespace {

using core::collective::Kind;
using import::XmlElement;

constexpr std::int64_t kMaxGpus = 1'024, kMaxChunks = 1 << 20, kMaxChannels = 1'024, kMaxBlocks = 65'536;
constexpr std::int64_t kMaxSteps = 1'000'000;                     // of all GPUs together
constexpr std::int64_t kMaxCells = 1 << 22, kMaxMoved = 1 << 24;  // chunks in buffers, and of all steps together
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 60;
constexpr std::size_t kMaxShownCharacters = 40;

constexpr std::array kStepNames{"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"};
constexpr std::array kProtocolNames{"Simple", "LL", "LL128"};
constexpr std::array kBufferNames{"i", "o", "s"};
/// msccl-tools writes the halves with and without a line between their words.
constexpr std::array<std::pair<const char*, Kind>, 6> kCollectives{{{"allreduce", Kind::all_reduce},
                                                                    {"allgather", Kind::all_gather},
                                                                    {"reducescatter", Kind::reduce_scatter},
                                                                    {"alltoall", Kind::all_to_all},
                                                                    {"reduce_scatter", Kind::reduce_scatter},
                                                                    {"all_gather", Kind::all_gather}}};

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Algorithm read(std::string_view text) {
    const auto begins = [&](const XmlElement& element) { begin(element); };
    const auto ends = [&] {
      if (--depth_ == 2) is_copy_ = false;
    };
    import::walk_xml(text, file_, begins, ends);
    if (std::ssize(algorithm_.gpus) != gpus_)
      fail(algorithm_.line, fmt::format("has {} <gpu>, and ngpus is {}", algorithm_.gpus.size(), gpus_));
    for (std::size_t gpu = 0; gpu < algorithm_.gpus.size(); ++gpu)
      for (ThreadBlock& block : algorithm_.gpus[gpu].blocks) finish(gpu, block);
    for (const Copy& copy : copies_) check_copy(copy);
    check_connections();
    return std::move(algorithm_);
  }

 private:
  /// Of an input chunk of a GPU to an output chunk of it.
  struct Copy {
    std::size_t gpu;
    std::int64_t from, to;
    int line;
  };

  [[noreturn]] void fail(int line, const std::string& what) const { throw core::InputError(what, file_, line); }

  void begin(const XmlElement& element) {
    constexpr std::array kNames{"algo", "gpu", "tb", "step"};
    if (depth_ == 2 && element.name == "copy") return read_copy(element);
    if (is_copy_)
      fail(element.line, fmt::format("<{}> stands in a <copy>", element.name.substr(0, kMaxShownCharacters)));
    if (depth_ >= kNames.size() || element.name != kNames.at(depth_))
      fail(element.line,
           fmt::format("<{}> stands where {} is right", element.name.substr(0, kMaxShownCharacters),
                       depth_ < kNames.size() ? fmt::format("<{}>", kNames.at(depth_)) : std::string("nothing")));
    if (depth_ == 0) read_algorithm(element);
    if (depth_ == 1) read_gpu(element);
    if (depth_ == 2) read_block(element);
    if (depth_ == 3) read_step(element);
    ++depth_;
  }

  std::string_view text(const XmlElement& element, const char* attribute) const {
    const auto found = element.attributes.find(attribute);
    if (found == element.attributes.end()) fail(element.line, fmt::format("<{}> lacks '{}'", element.name, attribute));
    return found->second;
  }

  std::int64_t integer(const XmlElement& element, const char* attribute, std::int64_t least, std::int64_t most) const {
    const std::string_view value = text(element, attribute);
    std::int64_t result = 0;
    const auto [at, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || at != value.data() + value.size() || result < least || result > most)
      fail(element.line, fmt::format("'{}' must be a number from {} to {}, not '{}'", attribute, least, most,
                                     value.substr(0, kMaxShownCharacters)));
    return result;
  }
  /// The same of an attribute that may be missing.
  std::int64_t integer_or(const XmlElement& element, const char* attribute, std::int64_t missing, std::int64_t most) {
    return element.attributes.count(attribute) == 0 ? missing : integer(element, attribute, 0, most);
  }

  template <class Names>
  std::size_t named(const XmlElement& element, const char* attribute, const Names& names) const {
    const std::string_view value = text(element, attribute);
    const auto found = std::find(names.begin(), names.end(), value);
    if (found == names.end())
      fail(element.line, fmt::format("'{}' must be one of {}, not '{}'", attribute, fmt::join(names, ", "),
                                     value.substr(0, kMaxShownCharacters)));
    return static_cast<std::size_t>(found - names.begin());
  }

  void read_algorithm(const XmlElement& element) {
    if (gpus_ > 0) fail(element.line, "<algo> is there twice");
    std::vector<const char*> names;
    for (const auto& [name, kind] : kCollectives) names.push_back(name);
    algorithm_.line = element.line;
    algorithm_.name = text(element, "name");
    algorithm_.protocol = static_cast<Protocol>(named(element, "proto", kProtocolNames));
    algorithm_.kind = kCollectives.at(named(element, "coll", names)).second;
    gpus_ = integer(element, "ngpus", 2, kMaxGpus);
    algorithm_.chunks = integer(element, "nchunksperloop", 1, kMaxChunks);
    if (algorithm_.kind != Kind::all_reduce && algorithm_.chunks % gpus_ != 0)
      fail(element.line, fmt::format("'nchunksperloop' {} must be a multiple of ngpus {}, as each GPU has a part",
                                     algorithm_.chunks, gpus_));
    channels_ = integer(element, "nchannels", 1, kMaxChannels);
    algorithm_.in_place = integer_or(element, "inplace", 0, 1) == 1;
    algorithm_.out_of_place = integer_or(element, "outofplace", algorithm_.in_place ? 0 : 1, 1) == 1;
    if (!algorithm_.in_place && !algorithm_.out_of_place)
      fail(element.line, "'inplace' and 'outofplace' are both 0: it is for no buffers");
    algorithm_.min_bytes = integer_or(element, "minBytes", 0, kMaxNumber);
    algorithm_.max_bytes = integer_or(element, "maxBytes", 0, kMaxNumber);
  }

  void read_gpu(const XmlElement& element) {
    const std::int64_t id = integer(element, "id", 0, gpus_ - 1);
    if (id != std::ssize(algorithm_.gpus))
      fail(element.line, fmt::format("<gpu> {} stands where {} is right", id, algorithm_.gpus.size()));
    Gpu& gpu = algorithm_.gpus.emplace_back();
    index_.emplace_back();
    gpu.scratch_chunks = integer(element, "s_chunks", 0, kMaxChunks);
    cells_ += 2 * algorithm_.chunks + gpu.scratch_chunks;
    if (cells_ > kMaxCells) fail(element.line, fmt::format("its buffers have more than {} chunks", kMaxCells));
    integer(element, "i_chunks", 0, kMaxChunks);
    integer(element, "o_chunks", 0, kMaxChunks);
  }

  void read_copy(const XmlElement& element) {
    copies_.push_back({algorithm_.gpus.size() - 1, integer(element, "i_off", 0, kMaxChunks),
                       integer(element, "o_off", 0, kMaxChunks), element.line});
    if (copies_.size() > kMaxCells) fail(element.line, fmt::format("has more than {} <copy>", kMaxCells));
    is_copy_ = true;
    ++depth_;
  }

  /// MSCCL's executors do not read copies of an input chunk to an output chunk, as TE-CCL writes them. In place there
  /// is nothing to be done where both are one.
  void check_copy(const Copy& copy) const {
    if (algorithm_.out_of_place)
      fail(copy.line, "<copy> is of an algorithm in place: MSCCL's executors do not copy; 'outofplace=\"0\"' is right");
    const auto part = static_cast<std::int64_t>(copy.gpu) * (algorithm_.chunks / gpus_);
    const std::int64_t from = copy.from + (algorithm_.kind == Kind::all_gather ? part : 0);
    const std::int64_t to = copy.to + (algorithm_.kind == Kind::reduce_scatter ? part : 0);
    if (from != to)
      fail(copy.line, fmt::format("copies chunk {} of the input to chunk {} of the output, which are two in place: "
                                  "MSCCL's executors do not copy",
                                  copy.from, copy.to));
  }

  std::int32_t peer(const XmlElement& element, const char* attribute) const {
    const std::int64_t gpu = integer(element, attribute, -1, gpus_ - 1);
    if (gpu == std::ssize(algorithm_.gpus) - 1)
      fail(element.line, fmt::format("'{}' is the thread block's own gpu {}", attribute, gpu));
    return static_cast<std::int32_t>(gpu);
  }

  void read_block(const XmlElement& element) {
    std::vector<ThreadBlock>& blocks = algorithm_.gpus.back().blocks;
    ThreadBlock block;
    block.line = element.line;
    block.id = integer(element, "id", 0, kMaxBlocks);
    if (!index_.back().try_emplace(block.id, static_cast<std::int32_t>(blocks.size())).second)
      fail(element.line, fmt::format("tb {} is there twice", block.id));
    block.send = peer(element, "send");
    block.receive = peer(element, "recv");
    block.channel = static_cast<std::int32_t>(integer(element, "chan", -1, channels_ - 1));
    if (block.channel < 0 && (block.send >= 0 || block.receive >= 0))
      fail(element.line, "'chan' is -1, which is right of a thread block alone that neither sends nor receives");
    blocks.push_back(std::move(block));
  }

  void read_step(const XmlElement& element) {
    std::vector<Step>& steps = algorithm_.gpus.back().blocks.back().steps;
    if (++steps_ > kMaxSteps) fail(element.line, fmt::format("has more than {} steps", kMaxSteps));
    if (const std::int64_t s = integer(element, "s", 0, kMaxSteps); s != std::ssize(steps))
      fail(element.line, fmt::format("step {} stands where {} is right", s, steps.size()));
    Step step;
    step.line = element.line;
    step.kind = static_cast<StepKind>(named(element, "type", kStepNames));
    const auto place = [&](const char* buffer, const char* offset) {
      return Place{static_cast<Buffer>(named(element, buffer, kBufferNames)), integer(element, offset, -1, kMaxChunks)};
    };
    step.source = place("srcbuf", "srcoff");
    step.destination = place("dstbuf", "dstoff");
    step.count = integer(element, "cnt", step.kind == StepKind::nop ? 0 : 1, kMaxChunks);
    step.wait_block = static_cast<std::int32_t>(integer(element, "depid", -1, kMaxBlocks));
    step.wait_step = static_cast<std::int32_t>(integer(element, "deps", -1, kMaxSteps));
    step.is_waited_for = integer(element, "hasdep", 0, 1) == 1;
    if ((step.wait_block < 0) != (step.wait_step < 0))
      fail(element.line, "one of 'depid' and 'deps' is -1, and the other is not");
    moved_ += step.count;
    if (moved_ > kMaxMoved) fail(element.line, fmt::format("its steps move more than {} chunks", kMaxMoved));
    steps.push_back(step);
  }

  /// Checks a thread block whose GPU is complete, and lets its steps wait for indices instead of ids.
  void finish(std::size_t gpu, ThreadBlock& block) const {
    const std::vector<ThreadBlock>& blocks = algorithm_.gpus[gpu].blocks;
    for (Step& step : block.steps) {
      if (step.sends() && block.send < 0)
        fail(step.line, fmt::format("{} sends, and the thread block's 'send' is -1", name_of(step.kind)));
      if (step.receives() && block.receive < 0)
        fail(step.line, fmt::format("{} receives, and the thread block's 'recv' is -1", name_of(step.kind)));
      if (step.reads_source()) check_place(gpu, step, step.source, "srcoff");
      if (step.writes()) check_place(gpu, step, step.destination, "dstoff");
      if (step.wait_block < 0) continue;
      const auto other = index_[gpu].find(step.wait_block);
      const std::vector<Step>* steps =
          other == index_[gpu].end() ? nullptr : &blocks[static_cast<std::size_t>(other->second)].steps;
      if (steps == nullptr || step.wait_step >= std::ssize(*steps))
        fail(step.line, fmt::format("waits for step {} of tb {}, which gpu {} does not have", step.wait_step,
                                    step.wait_block, gpu));
      if (!(*steps)[static_cast<std::size_t>(step.wait_step)].is_waited_for)
        fail(step.line, fmt::format("waits for step {} of tb {}, whose 'hasdep' is 0, so that it is never told",
                                    step.wait_step, step.wait_block));
      step.wait_block = other->second;
    }
  }

  void check_place(std::size_t gpu, const Step& step, const Place& place, const char* attribute) const {
    const std::int64_t size = place.buffer == Buffer::input    ? algorithm_.input_chunks()
                              : place.buffer == Buffer::output ? algorithm_.output_chunks()
                                                               : algorithm_.gpus[gpu].scratch_chunks;
    if (place.offset < 0 || place.offset + step.count > size)
      fail(step.line, fmt::format("'{}' {} and 'cnt' {} go beyond the {} chunks of buffer '{}'", attribute,
                                  place.offset, step.count, size, name_of(place.buffer)));
  }

  /// A connection is of one thread block at each end.
  void check_connections() const {
    for (std::size_t gpu = 0; gpu < algorithm_.gpus.size(); ++gpu) {
      std::map<std::tuple<bool, std::int32_t, std::int32_t>, std::int64_t> known;
      for (const ThreadBlock& block : algorithm_.gpus[gpu].blocks)
        for (const bool sends : {true, false}) {
          const std::int32_t peer = sends ? block.send : block.receive;
          if (peer < 0) continue;
          const auto [other, is_new] = known.try_emplace({sends, peer, block.channel}, block.id);
          if (!is_new)
            fail(block.line, fmt::format("tb {} {} gpu {} on channel {}, as tb {} does", block.id,
                                         sends ? "sends to" : "receives from", peer, block.channel, other->second));
        }
    }
  }

  const std::string& file_;
  std::size_t depth_ = 0;
  bool is_copy_ = false;  // the element at depth 2
  std::vector<Copy> copies_;
  std::int64_t gpus_ = 0, channels_ = 0, steps_ = 0, cells_ = 0, moved_ = 0;
  Algorithm algorithm_;
  std::vector<std::map<std::int64_t, std::int32_t>> index_;  // by GPU: of a thread block, by its id
};                                                           // namespace

}  // namespace

std::int64_t Algorithm::input_chunks() const {
  return kind == Kind::all_gather ? chunks / std::ssize(gpus) : chunks;
}
std::int64_t Algorithm::output_chunks() const {
  return kind == Kind::reduce_scatter ? chunks / std::ssize(gpus) : chunks;
}

const char* name_of(StepKind kind) {
  return kStepNames.at(static_cast<std::size_t>(kind));
}
const char* name_of(Protocol protocol) {
  return kProtocolNames.at(static_cast<std::size_t>(protocol));
}
const char* name_of(Buffer buffer) {
  return kBufferNames.at(static_cast<std::size_t>(buffer));
}

std::int64_t slots_of(Protocol protocol) {
  return protocol == Protocol::simple ? 2 : 8;
}

bool is_algorithm_file(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  for (;;) {
    text = import::trimmed(text, kBlanks);
    const bool is_comment = text.starts_with("<!--");
    if (!is_comment && !text.starts_with("<?")) break;
    const std::string_view mark = is_comment ? "-->" : "?>";
    const std::size_t end = text.find(mark);
    if (end == text.npos) return false;
    text.remove_prefix(end + mark.size());
  }
  return text.starts_with("<algo") && text.size() > 5 && (kBlanks.find(text[5]) != kBlanks.npos || text[5] == '>');
}

Algorithm parse_algorithm(std::string_view text, const std::string& name) {
  return Reader(name).read(text);
}

}  // namespace manyworlds::experiments::msccl
