#include "experiments/settings/network_lengths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "experiments/key_contents/architecture.hpp"
#include "experiments/keys/section.hpp"
#include "experiments/settings/practice.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionValue;
using import::Entry;
using import::Node;

constexpr const char *kSequence = "model.sequence", *kArchitecture = "model.architecture";

/// A network as its description has it.
struct Network {
  std::string name;
  bool own = false;  // it has a number of tokens of its own; otherwise the model's
  std::int64_t tokens = 0, hidden = 0;
  std::vector<const PartSpec*> parts;  // of all blocks
  const PartSpec* first = nullptr;     // of its first layer
  std::optional<std::int64_t> fitted;  // tokens that follow from the new sequence
};

std::int64_t integer_in(const core::OptionSet& values, const char* name, std::int64_t otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : std::get<std::int64_t>(found->second);
}

/// Returns an option of a part's own, or its default; 0 if there is no such number.
std::int64_t option_of(const PartSpec& part, const char* name) {
  const core::OptionInfo* info = find_option(part.type->options, name);
  if (info == nullptr || info->kind != core::OptionInfo::Kind::integer) return 0;
  return integer_in(part.own, name, std::get<std::int64_t>(info->default_value));
}

const Node& networks_of(const Node& architecture) {
  return *architecture.find("networks");
}

std::vector<Network> read_networks(const Node& architecture, const ArchitectureSpec& spec, std::int64_t hidden,
                                   std::int64_t sequence) {
  std::vector<Network> networks;
  std::size_t block = 0;
  for (const Entry& entry : networks_of(architecture).entries) {
    const std::size_t first = block;
    block += entry.value.find("blocks")->entries.size();
    const core::OptionSet& own = spec.blocks[first].of_network;
    Network network;
    network.name = entry.key;
    network.own = own.contains("sequence");
    network.tokens = integer_in(own, "sequence", sequence);
    network.hidden = integer_in(own, "hidden", hidden);
    for (std::size_t i = first; i < block; ++i)
      for (const PartSpec& part : spec.blocks[i].parts) network.parts.push_back(&part);
    const auto layer = std::find_if(spec.block_by_layer.begin(), spec.block_by_layer.end(),
                                    [&](std::uint32_t index) { return index >= first && index < block; });
    network.first = &spec.blocks[*layer].parts.front();
    networks.push_back(std::move(network));
  }
  return networks;
}

/// Returns the numbers that parts have of an option.
std::set<std::int64_t> numbers_of(const Network& network, const char* option) {
  std::set<std::int64_t> numbers;
  for (const PartSpec* part : network.parts)
    if (const std::int64_t number = option_of(*part, option); number > 0) numbers.insert(number);
  return numbers;
}

/// Returns the tokens of a network whose output the first part of `next` reads, if these follow from those of `next`.
std::optional<std::int64_t> tokens_read(const Network& network, const Network& next) {
  const std::int64_t after = *next.fitted;
  const std::string& type = next.first->type->name;
  if (type == "convolution_1d") {
    const std::int64_t stride = option_of(*next.first, "stride"), kernel = option_of(*next.first, "kernel");
    if (network.tokens == stride * next.tokens) return stride * after;
    // Without padding, up to stride - 1 tokens at the end are read by none of the kernel's places.
    const std::int64_t unread = network.tokens - (stride * (next.tokens - 1) + kernel);
    return unread >= 0 && unread < stride ? std::optional(stride * (after - 1) + kernel + unread) : std::nullopt;
  }
  if (type == "convolution") {
    const std::int64_t stride = option_of(*next.first, "stride");
    return network.tokens == stride * stride * next.tokens ? std::optional(stride * stride * after) : std::nullopt;
  }
  const std::int64_t inputs = option_of(*next.first, "inputs"), width = inputs > 0 ? inputs : next.hidden;
  if (network.tokens * network.hidden != next.tokens * width || after * width % network.hidden != 0)
    return std::nullopt;
  return after * width / network.hidden;
}

/// Returns the tokens of a network of joint parts: those of the text, and those of the model.
std::optional<std::int64_t> tokens_joined(const Network& network, std::int64_t described, std::int64_t sequence) {
  for (const std::int64_t text : numbers_of(network, "text"))
    if (network.tokens == text + described) return text + sequence;
  return std::nullopt;
}

/// Gives networks the tokens that follow from the model's.
void fit(std::vector<Network>& networks, const ArchitectureSpec& spec, std::int64_t described, std::int64_t sequence) {
  for (std::size_t i = networks.size(); i-- > 0;) {
    Network& network = networks[i];
    const Network* next = i + 1 < networks.size() ? &networks[i + 1] : nullptr;
    if (!network.own)
      network.fitted = sequence;
    else if (const auto joined = tokens_joined(network, described, sequence))
      network.fitted = joined;
    else if (next != nullptr && next->fitted && !spec.embedding)  // the model's own embedding reads tokens
      network.fitted = tokens_read(network, *next);
  }
}

bool has_part(const Network& network, std::string_view type) {
  return std::any_of(network.parts.begin(), network.parts.end(),
                     [&](const PartSpec* part) { return part->type->name == type; });
}

/// Whether a network keeps its tokens because others state them as a text that is given with each sample of what is
/// denoised, whatever the size of that.
bool is_given_text(const std::vector<Network>& networks, const Network& network) {
  if (networks.back().own || !has_part(networks.back(), "denoising_head")) return false;
  return std::any_of(networks.begin(), networks.end(), [&](const Network& other) {
    return numbers_of(other, "text").contains(network.tokens) || numbers_of(other, "keys").contains(network.tokens);
  });
}

/// Whether the last network is a language model that reads what the others deliver among its tokens: the images of a
/// sample are as many and as large however long its text is.
bool is_behind_towers(const std::vector<Network>& networks, const ArchitectureSpec& spec) {
  return spec.embedding && spec.head && !networks.back().own &&
         std::all_of(networks.begin(), networks.end(),
                     [](const Network& network) { return numbers_of(network, "keys").empty(); });
}

std::string tokens_text(const std::vector<Network>& networks) {
  std::vector<std::string> texts;
  for (const Network& network : networks) texts.push_back(fmt::format("{} {}", network.name, network.tokens));
  return fmt::format("{}", fmt::join(texts, ", "));
}

[[noreturn]] void fail(const std::vector<Network>& networks, const std::string& name, std::int64_t described,
                       std::int64_t sequence) {
  std::vector<std::string> lost;
  bool has_keys = false;
  for (const Network& network : networks) {
    if (!network.fitted) lost.push_back(network.name);
    has_keys |= !numbers_of(network, "keys").empty();
  }
  throw InputError(fmt::format(
      "'model.sequence' is {}, and the description of {}, at {}, does not tell what networks beside '{}' have then "
      "(tokens of a sample: {}); give the model 'architecture.networks.NAME.sequence' of {}{} too, as in model: "
      "{{like: "
      "…, sequence: {}, architecture: …}}: `manyworlds model` prints the architecture",
      sequence, name.empty() ? "the model" : name, described, networks.back().name, tokens_text(networks),
      fmt::join(lost, " and "), has_keys ? ", and 'keys' of cross_attention" : "", sequence));
}

void check_image(const std::vector<Network>& networks, const std::string& name, std::int64_t sequence) {
  const Network& delivers = networks[networks.size() - 2];
  if (delivers.tokens <= sequence) return;
  throw InputError(
      fmt::format("'model.sequence' {} is the tokens of network '{}' of {}, among which are the {} of an image that "
                  "'{}' delivers; it must be at least as many",
                  sequence, networks.back().name, name.empty() ? "the model" : name, delivers.tokens, delivers.name));
}

/// Writes the tokens of a network in its description.
void rewrite(Node& architecture, const std::vector<Network>& networks) {
  for (Entry& entry : architecture.entries) {
    if (entry.key != "networks") continue;
    for (std::size_t i = 0; i < networks.size(); ++i)
      for (Entry& option : entry.value.entries[i].value.entries)
        if (option.key == "sequence" && networks[i].fitted) option.value.text = std::to_string(*networks[i].fitted);
  }
}

}  // namespace

FittedNetworks fitted_networks(const std::string& text, const std::string& name, std::int64_t hidden,
                               std::int64_t described, std::int64_t sequence) {
  Node architecture = import::parse_yaml(text, kArchitecture);
  if (architecture.find("networks") == nullptr) return {text, ""};
  const ArchitectureSpec spec = read_architecture(architecture);
  std::vector<Network> networks = read_networks(architecture, spec, hidden, described);
  fit(networks, spec, described, sequence);
  const bool behind_towers = is_behind_towers(networks, spec);
  std::vector<Network> kept;
  for (const Network& network : networks) {
    if (network.fitted) continue;
    if (!behind_towers && !is_given_text(networks, network)) fail(networks, name, described, sequence);
    kept.push_back(network);
  }
  if (behind_towers && !kept.empty()) check_image(networks, name, sequence);
  rewrite(architecture, networks);
  return {import::flow_text(architecture),
          kept.empty()
              ? ""
              : fmt::format("networks that keep their tokens, whatever model.sequence is: {}", tokens_text(kept))};
}

void remember_described_sequence(Settings& settings) {
  const OptionValue* sequence = settings.value(kSequence);
  if (sequence == nullptr) sequence = settings.value(deferred_mark(kSequence));
  if (sequence == nullptr || settings.text(kArchitecture).find("networks") == std::string::npos) return;
  settings.set(deferred_mark(kArchitecture), std::get<std::int64_t>(*sequence));
}

void forget_described_sequence(Settings& settings) {
  settings.erase(deferred_mark(kArchitecture));
}

std::string fit_networks(Settings& settings) {
  const OptionValue *described = settings.value(deferred_mark(kArchitecture)), *sequence = settings.value(kSequence);
  if (described == nullptr) return "";
  const auto before = std::get<std::int64_t>(*described);
  const OptionValue* hidden = settings.value("model.hidden");
  const bool fits = sequence == nullptr || hidden == nullptr || std::get<std::int64_t>(*sequence) == before ||
                    settings.text("model.inference") == "generation";  // of several networks a rule refuses it
  FittedNetworks fitted;
  if (!fits)
    fitted = fitted_networks(settings.text(kArchitecture), settings.text("model.name"), std::get<std::int64_t>(*hidden),
                             before, std::get<std::int64_t>(*sequence));
  forget_described_sequence(settings);
  if (!fits) settings.set(kArchitecture, fitted.text);
  return fitted.note;
}

}  // namespace manyworlds::experiments
