#include "experiments/simai/workload_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/error.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::simai {
namespace {

using core::InputError;
using core::collective::Kind;

constexpr std::int64_t kMaxNs = 1'000'000'000'000;         // of one pass of a layer
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;  // of one communication
constexpr std::int64_t kMaxLayers = 1'000'000;
constexpr std::int64_t kSimAIsLeast = 4096;  // bytes of a forward communication, see pass_of()

struct PolicyInfo {
  std::string_view name;
  Loop loop;
  bool is_hybrid, has_weight_communication;
};
constexpr std::array<PolicyInfo, 8> kPolicies{{{"HYBRID_TRANSFORMER_FWD_IN_BCKWD", Loop::transformer, true, true},
                                               {"HYBRID_TRANSFORMER", Loop::transformer, true, true},
                                               {"DATA", Loop::data, false, true},
                                               {"MODEL", Loop::model, false, false},
                                               {"HYBRID_DATA_MODEL", Loop::model, true, true},
                                               {"HYBRID_MODEL_DATA", Loop::model, true, true},
                                               {"DISTRIBUTED_INFERENCE", Loop::inference, false, false},
                                               {"MICRO", Loop::micro, false, true}}};

struct TypeInfo {
  std::string_view name;
  Kind kind;
};
constexpr std::array<TypeInfo, 5> kTypes{{{"ALLREDUCE", Kind::all_reduce},
                                          {"ALLGATHER", Kind::all_gather},
                                          {"REDUCESCATTER", Kind::reduce_scatter},
                                          {"ALLTOALL", Kind::all_to_all},
                                          {"BROADCAST", Kind::broadcast}}};

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  WorkloadFile read(std::string_view text) {
    import::check_size(text.size(), name_);
    import::check_text(text, name_);
    std::int64_t layers = -1;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::vector<std::string_view> words = import::words_of(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (words.empty()) continue;
      if (file_.policy.empty())
        header(words);
      else if (layers < 0)
        layers = number_of_layers(words);
      else if (std::ssize(file_.layers) < layers)
        file_.layers.push_back(layer(words));
      else
        ++behind_;
    }
    if (file_.policy.empty()) throw InputError("is empty; the first line must have SimAI's policy", name_);
    if (layers < 0) throw InputError("ends before the number of layers, which the second line must have", name_);
    if (std::ssize(file_.layers) < layers)
      throw InputError(
          fmt::format("has {} of {} layers: the file is cut, or its second line is wrong", file_.layers.size(), layers),
          name_, line_);
    if (behind_ > 0) file_.account.push_back(fmt::format("{} lines behind the last layer are not read", behind_));
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, name_, line_); }

  /// A whole number may be written as a float, "2097152.0", as Python writes what it has divided.
  std::int64_t number(std::string_view word, const std::string& what, std::int64_t least, std::int64_t most) const {
    std::int64_t value = 0;
    const std::string_view digits = word.ends_with(".0") ? word.substr(0, word.size() - 2) : word;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < least || value > most)
      fail(fmt::format("{} must be an integer from {} to {}, not '{}'", what, least, most, word));
    return value;
  }

  void header(const std::vector<std::string_view>& words) {
    const auto policy =
        std::find_if(kPolicies.begin(), kPolicies.end(), [&](const auto& one) { return one.name == words[0]; });
    if (policy == kPolicies.end()) {
      std::vector<std::string> names;
      for (const PolicyInfo& one : kPolicies) names.emplace_back(one.name);
      fail(fmt::format("SimAI's policy '{}' is not read; known are {}", words[0], fmt::join(names, ", ")));
    }
    file_.policy = policy->name;
    file_.loop = policy->loop;
    file_.is_hybrid = policy->is_hybrid;
    file_.has_weight_communication = policy->has_weight_communication;
    for (std::size_t i = 1; i < words.size(); i += values_of(words, i)) {
    }
  }

  /// Reads the key words[i] with its values; returns how many words these are.
  std::size_t values_of(const std::vector<std::string_view>& words, std::size_t i) {
    std::string key(import::trimmed(words[i], ":"));
    const auto value = [&](std::int64_t least, std::int64_t most) {
      if (i + 1 == words.size()) fail(fmt::format("'{}' has no value", key));
      return number(words[i + 1], fmt::format("'{}'", key), least, most);
    };
    if (key == "checkpoints" || key == "checkpoint_initiates") {
      const std::int64_t count = value(0, kMaxLayers);
      if (i + 2 + static_cast<std::size_t>(count) > words.size())
        fail(fmt::format("'{}' promises {} layers, and the header ends before", key, count));
      std::vector<std::uint32_t>& to = key == "checkpoints" ? file_.checkpoints : file_.checkpoint_initiates;
      for (std::size_t at = i + 2; at < i + 2 + static_cast<std::size_t>(count); ++at)
        to.push_back(static_cast<std::uint32_t>(number(words[at], "a layer of '" + key + "'", 0, kMaxLayers - 1)));
      return 2 + static_cast<std::size_t>(count);
    }
    struct Size {
      std::string_view name;
      std::int64_t least;
      std::uint32_t* to;
    };
    // AICB writes "ga: 0" where the batch is below the replicas; the report of a pipeline alone takes ga and vpp.
    const std::array<Size, 6> sizes{{{"model_parallel_NPU_group", 1, &file_.tp},
                                     {"ep", 1, &file_.ep},
                                     {"pp", 1, &file_.pp},
                                     {"vpp", 0, &file_.vpp},
                                     {"ga", 0, &file_.micro_batches},
                                     {"all_gpus", 1, &file_.gpus}}};
    for (const auto& [name, least, to] : sizes)
      if (key == name) {
        *to = static_cast<std::uint32_t>(value(least, programs::kMaxRanks));
        return 2;
      }
    if (key == "pp_comm") {
      file_.pipeline_bytes = value(0, kMaxBytes);
      return 2;
    }
    if (key == "mode") {
      if (value(0, 1) == 1)
        file_.account.push_back("'mode: 1' of the header: inference, in AICB's words; SimAI does not ask for it");
      return 2;
    }
    file_.account.push_back(fmt::format("'{}' of the header is not known, and not followed", key));
    const bool has_value = words[i].ends_with(':') && i + 1 < words.size() && !words[i + 1].ends_with(':');
    return has_value ? 2 : 1;
  }

  std::int64_t number_of_layers(const std::vector<std::string_view>& words) const {
    if (words.size() != 1) fail("the second line must be the number of layers alone");
    return number(words[0], "the number of layers", 1, kMaxLayers);
  }

  Layer layer(const std::vector<std::string_view>& words) const {
    if (words.size() != 12)
      fail(
          fmt::format("a layer has 12 words (id, dependency, three times compute, type and bytes, process time), not "
                      "{}",
                      words.size()));
    Layer layer;
    layer.id = words[0];
    layer.line = line_;
    number(words[1], "the dependency", -kMaxLayers, kMaxLayers);
    layer.forward = pass_of(words, 2, "forward");
    if (layer.forward.bytes > 0 && file_.policy == kPolicies[0].name)
      layer.forward.bytes = std::max(layer.forward.bytes, kSimAIsLeast);
    layer.input_gradient = pass_of(words, 5, "input gradients");
    layer.weight_gradient = pass_of(words, 8, "weight gradients");
    layer.process_ns = number(words[11], "the process time", 0, kMaxNs);
    return layer;
  }

  LayerPass pass_of(const std::vector<std::string_view>& words, std::size_t at, const std::string& pass) const {
    LayerPass result;
    result.compute_ns = number(words[at], "the compute time of " + pass, 0, kMaxNs);
    result.bytes = number(words[at + 2], "the bytes of " + pass, 0, kMaxBytes);
    std::string_view type = words[at + 1];
    if (type == "NONE") {
      result.bytes = 0;
      return result;
    }
    const auto known =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& one) { return type.starts_with(one.name); });
    if (known != kTypes.end()) {
      result.kind = known->kind;
      const std::string_view suffix = type.substr(known->name.size());
      if (suffix.empty()) return result;
      result.suffix = suffix == "_EP" ? GroupSuffix::expert : GroupSuffix::expert_data;
      if (suffix == "_EP" || suffix == "_DP_EP") return result;
    }
    fail(
        fmt::format("'{}' is no type of communication: NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or "
                    "BROADCAST with nothing, _EP or _DP_EP behind it",
                    type));
  }

  const std::string& name_;
  int line_ = 0;
  std::int64_t behind_ = 0;
  WorkloadFile file_;
};

}  // namespace

bool is_workload_file(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const std::vector<std::string_view> words = import::words_of(line);
  return !words.empty() &&
         std::any_of(kPolicies.begin(), kPolicies.end(), [&](const PolicyInfo& one) { return one.name == words[0]; });
}

WorkloadFile parse_workload_file(std::string_view text, const std::string& name) {
  return Reader(name).read(text);
}

}  // namespace manyworlds::experiments::simai
