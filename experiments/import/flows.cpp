#include "experiments/import/flows.hpp"

#include <array>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

constexpr std::string_view kHeader = "src,dst,bytes,start_ps";
constexpr std::array<const char*, 4> kFields{"src", "dst", "bytes", "start_ps"};
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr core::Time kLatestStart = 1'000'000 * core::kSecond;

class Row {
 public:
  Row(std::string_view line, const std::string& file, int number) : rest_(line), file_(file), number_(number) {}

  /// Returns the next field, an integer from `minimum` to `maximum`.
  std::int64_t next(std::int64_t minimum, std::int64_t maximum) {
    const char* name = kFields[field_];
    const std::size_t comma = rest_.find(',');
    const bool last = ++field_ == kFields.size();
    if (last != (comma == std::string_view::npos)) fail(fmt::format("a row is four integers: {}", kHeader));
    const std::string_view text = rest_.substr(0, comma);
    const auto value = core::number_in<std::int64_t>(text);
    if (!value || *value < minimum || *value > maximum)
      fail(fmt::format("{} must be an integer from {} to {}, not '{}'", name, minimum, maximum, text));
    rest_.remove_prefix(last ? rest_.size() : comma + 1);
    return *value;
  }
  [[noreturn]] void fail(const std::string& what) const { throw core::InputError(what, file_, number_); }

 private:
  std::string_view rest_;
  const std::string& file_;
  int number_;
  std::size_t field_ = 0;
};

/// Removes the first line from `text` and returns it without its line end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::vector<Flow> parse_flows(std::string_view text, const std::string& name, std::uint32_t gpus) {
  if (const std::string_view header = take_line(text); header != kHeader)
    throw core::InputError(fmt::format("the first line must be '{}'", kHeader), name, 1);
  std::vector<Flow> flows;
  for (int number = 2; !text.empty(); ++number) {
    Row row(take_line(text), name, number);
    Flow flow;
    flow.source = static_cast<std::uint32_t>(row.next(0, std::int64_t{gpus} - 1));
    flow.destination = static_cast<std::uint32_t>(row.next(0, std::int64_t{gpus} - 1));
    flow.bytes = row.next(1, kMaxBytes);
    flow.start_ps = row.next(0, kLatestStart);
    if (flow.source == flow.destination)
      row.fail(fmt::format("src and dst are both {}; they must differ", flow.source));
    flows.push_back(flow);
  }
  if (flows.empty()) throw core::InputError("no flow follows the header", name, 1);
  return flows;
}

std::vector<Flow> read_flows(const std::string& path, std::uint32_t gpus) {
  return parse_flows(read_text(path), path, gpus);
}

}  // namespace manyworlds::experiments::import
