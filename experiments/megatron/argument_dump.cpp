// Reads the arguments that Megatron-LM prints when it starts, as its log has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include "core/base/error.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::string_view kBegin = "- arguments -", kEnd = "- end of arguments -";
constexpr std::string_view kDots = " ....";

/// What the dump calls an argument that has another name when it is given.
struct Renamed {
  std::string_view printed, name;
};
constexpr std::array<Renamed, 8> kRenamed{
    {{"fp8", "fp8-format"},
     {"fp4", "fp4-format"},
     {"num-moe-experts", "num-experts"},
     {"virtual-pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank"},
     {"layernorm-zero-centered-gamma", "apply-layernorm-1p"},
     {"microbatch-group-size-per-vp-stage", "microbatch-group-size-per-virtual-pipeline-stage"},
     {"layernorm-epsilon", "norm-epsilon"},
     {"fp8-param", "fp8-param-gather"}}};
/// Switches that the dump prints the other way round.
constexpr std::array<Renamed, 7> kInverted{{{"add-bias-linear", "disable-bias-linear"},
                                            {"apply-rope-fusion", "no-rope-fusion"},
                                            {"overlap-p2p-comm", "no-overlap-p2p-communication"},
                                            {"bias-gelu-fusion", "no-bias-gelu-fusion"},
                                            {"bias-swiglu-fusion", "no-bias-swiglu-fusion"},
                                            {"bias-dropout-fusion", "no-bias-dropout-fusion"},
                                            {"gradient-accumulation-fusion", "no-gradient-accumulation-fusion"}}};
/// What follows from other arguments, or says where a process runs.
constexpr std::array<std::string_view, 21> kDerived{"rank",
                                                    "world-size",
                                                    "data-parallel-size",
                                                    "params-dtype",
                                                    "iteration",
                                                    "do-train",
                                                    "do-valid",
                                                    "do-test",
                                                    "consumed-train-samples",
                                                    "consumed-valid-samples",
                                                    "dynamic-loss-scale",
                                                    "transformer-pipeline-model-parallel-size",
                                                    "encoder-num-layers",
                                                    "encoder-seq-length",
                                                    "start-weight-decay",
                                                    "end-weight-decay",
                                                    "skipped-train-samples",
                                                    "add-position-embedding",
                                                    "num-layers-at-start-in-bf16",
                                                    "num-layers-at-end-in-bf16",
                                                    "moe-token-dropping"};  // of 2024: without effect

/// What versions of 2023 and 2024 have for other models, or for an external logger. argparse prints it whatever is
/// trained; the arguments that turn such a model on are in the table of arguments.
constexpr std::array<std::string_view, 4> kOfOtherModels{"bert-", "retriever-", "retro-", "one-logger-"};

std::optional<std::string_view> lookup(const auto& table, std::string_view printed) {
  for (const Renamed& one : table)
    if (one.printed == printed) return one.name;
  return std::nullopt;
}

struct Printed {
  std::string name, value;
  int line;
};

/// Reads "  name ...... value", with whatever a launcher prints before it.
std::optional<Printed> read_line(const std::string& line, int number) {
  const std::size_t dots = line.find(kDots);
  if (dots == std::string::npos) return std::nullopt;
  const std::size_t begin = line.find_last_of(" \t:]", dots - (dots > 0 ? 1 : 0));
  std::string name =
      line.substr(begin == std::string::npos ? 0 : begin + 1, dots - (begin == std::string::npos ? 0 : begin + 1));
  const std::size_t end = line.find_first_not_of('.', dots + 1);
  if (name.empty() || end == std::string::npos || line[end] != ' ') return std::nullopt;
  std::replace(name.begin(), name.end(), '_', '-');
  return Printed{name, std::string(import::trimmed(line.substr(end), " \t\r")), number};
}

class DumpReader {
 public:
  explicit DumpReader(const std::string& path) : file_(std::make_shared<const std::string>(path)) {
    result_.kind = "the arguments in a log of Megatron-LM";
  }

  JobArguments read(const std::string& text);

 private:
  void add(const Printed& one);
  Place place(int line) const { return {file_, line}; }

  std::shared_ptr<const std::string> file_;
  JobArguments result_;
};

JobArguments DumpReader::read(const std::string& text) {
  std::istringstream lines(text);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find(kEnd) != std::string::npos) break;
    if (inside)
      if (const auto one = read_line(line, number)) add(*one);
    inside = inside || line.find(kBegin) != std::string::npos;
  }
  if (result_.arguments.empty()) throw core::InputError("the dump of arguments is empty", *file_);
  return std::move(result_);
}

void DumpReader::add(const Printed& one) {
  if (one.name == "world-size") result_.gpus = shell::integer_of(one.value).value_or(0);
  if (std::find(kDerived.begin(), kDerived.end(), one.name) != kDerived.end()) return;
  OwnSetting own = own_setting(one.name, one.value, place(one.line));
  if (own.given) result_.arguments.push_back(std::move(*own.given));
  if (!own.argument.empty() || is_off(one.value)) return;
  for (const std::string_view prefix : kOfOtherModels)
    if (one.name.starts_with(prefix)) return;
  fail_at(place(one.line), fmt::format("{} {} is no argument of Megatron-LM that is known here", one.name, one.value));
}

/// argparse prints what is not given as well: only a value that decides something is an argument.
std::optional<Argument> argument_of(const KnownName& known, const std::string& name, const std::string& value,
                                    const Place& place) {
  if (is_off(value)) return std::nullopt;
  if (known.takes == Takes::nothing && value != "True" && known.fate == Fate::mapped)
    fail_at(place, fmt::format("{} must be True or False, not '{}'", name, value));
  const std::size_t point = value.find('.');
  const bool enumerated = point != std::string::npos && value.find_first_not_of("0123456789.e-+") == 0;
  Argument argument{known.name, {}, place};
  if (known.takes != Takes::nothing)
    argument.values.push_back(
        {enumerated && known.name == "attention-backend" ? value.substr(point + 1) : value, place});
  return argument;
}

}  // namespace

bool is_off(const std::string& value) {
  return value == "None" || value == "False" || value == "[]" || value.empty() || value == "{}";
}

OwnSetting own_setting(const std::string& printed, const std::string& value, const Place& place) {
  std::string own = printed;
  std::replace(own.begin(), own.end(), '_', '-');
  const auto given_if_false = [&](const std::string& argument) {
    return OwnSetting{argument, value == "False" ? std::optional(Argument{argument, {}, place}) : std::nullopt};
  };
  if (const auto inverted = lookup(kInverted, own)) return given_if_false(std::string(*inverted));
  const std::string name(lookup(kRenamed, own).value_or(own));
  if (const KnownName* known = find_argument(name)) return {name, argument_of(*known, printed, value, place)};
  for (const char* prefix : {"no-", "disable-"})
    if (find_argument(prefix + name) != nullptr) return given_if_false(prefix + name);
  return {};
}

OwnName own_name(const std::string& argument) {
  OwnName own{argument};
  for (const Renamed& one : kInverted)
    if (one.name == argument) own = {std::string(one.printed), true};
  for (const char* name : {"fp8-format", "fp4-format"})
    if (argument == name) own.name = argument.substr(0, 3);
  for (const std::string prefix : {"no-", "disable-"})
    if (argument.starts_with(prefix) && !own.inverted) own = {argument.substr(prefix.size()), true};
  std::replace(own.name.begin(), own.name.end(), '-', '_');
  return own;
}

bool has_argument_dump(const std::string& text) {
  return text.find(kBegin) != std::string::npos && text.find(kDots) != std::string::npos;
}

JobArguments read_argument_dump(const std::string& text, const std::string& path) {
  return DumpReader(path).read(text);
}

}  // namespace manyworlds::experiments::jobs
