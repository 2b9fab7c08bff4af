#include "experiments/chakra/comm_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::chakra {
namespace {

using core::InputError;
using core::workload::StepPart;

/// Returns the parallel dimension of a group by the words of its description (Megatron-LM's and torchtitan's).
StepPart part_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  constexpr std::array<std::pair<std::string_view, StepPart>, 5> kWords{{{"expert", StepPart::exposed_ep},
                                                                         {"tensor", StepPart::exposed_tp},
                                                                         {"pipeline", StepPart::exposed_pp},
                                                                         {"context", StepPart::exposed_cp},
                                                                         {"data", StepPart::exposed_dp}}};
  for (const auto& [word, part] : kWords)
    if (text.find(word) != text.npos) return part;
  return StepPart::exposed_other;
}

/// The text of the list that PyTorch writes into a node's inputs: field 1 of IOInfo, as "['[{...}]']".
std::string_view list_of(const TraceNode& node, const std::string& name) {
  for (WireReader reader(node.inputs, name); !reader.done();) {
    const WireField field = reader.field();
    if (field.number != 1 || field.type != WireType::bytes) continue;
    const std::size_t begin = field.bytes.find("[{"), end = field.bytes.rfind("}]");
    if (begin != field.bytes.npos && end != field.bytes.npos && end > begin)
      return field.bytes.substr(begin, end + 2 - begin);
  }
  return {};
}

}  // namespace

CommGroups::CommGroups(std::uint32_t ranks) : count_(ranks) {
  std::vector<std::uint32_t> all(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) all[rank] = rank;
  add("", std::move(all), StepPart::exposed_other);
}

std::uint32_t CommGroups::add(const std::string& name, std::vector<std::uint32_t> ranks, StepPart exposed) {
  if (ranks.empty()) ranks = groups_.front();
  const std::set<std::uint32_t> distinct(ranks.begin(), ranks.end());
  const bool is_twice = distinct.size() < ranks.size();
  if (is_twice || *distinct.rbegin() >= count_)
    throw InputError(fmt::format("group '{}' has {}", name,
                                 is_twice ? std::string("a rank twice")
                                          : fmt::format("rank {}, where there are {}", *distinct.rbegin(), count_)));
  const auto [known, is_new] = known_.try_emplace({name, ranks}, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) groups_.push_back(std::move(ranks)), exposed_.push_back(exposed);
  return known->second;
}

void CommGroups::add_file(std::string_view text, const std::string& name) {
  const nlohmann::json document = import::parse_json(text, name);
  if (!document.is_object()) throw InputError("must be an object of groups, as {\"1\": [0, 1]}", name);
  try {
    for (const auto& [key, list] : document.items()) {
      std::vector<std::uint32_t> ranks;
      import::JsonView(list, key.c_str()).for_each([&](const import::JsonView& rank) {
        ranks.push_back(static_cast<std::uint32_t>(rank.whole(0, 0xffffffff)));
    });
    if (key == "0" && !ranks.empty() && ranks.size() != count_)
      throw InputError(fmt::format(
          "group '0' has {} of {} ranks: 0 is all ranks, and ASTRA-sim stops at a file that has it; give it "
          "another number",
          ranks.size(), count_));
    of_file_[key] = add(key, std::move(ranks), StepPart::exposed_other);
  }
}
catch (const InputError& error) {
  throw InputError(error.what(), name);
}
}  // namespace manyworlds::experiments::chakra

bool CommGroups::add_listed(std::uint32_t rank, const TraceNode& node) {
  const std::string name = fmt::format("metadata node {}", node.id);
  const std::string_view text = list_of(node, name);
  if (text.empty()) return false;
  const nlohmann::json document = import::parse_json(text, name);
  import::JsonView(document).for_each([&](const import::JsonView& group) {
    std::vector<std::uint32_t> ranks;
  group.at("ranks").for_each(
      [&](const import::JsonView& one) { ranks.push_back(static_cast<std::uint32_t>(one.whole(0, 0xffffffff))); });
  const std::optional<import::JsonView> description = group.find("pg_desc");
  const std::string& called = group.at("pg_name").text();
  listed_[{rank, called}] =
      add(called, std::move(ranks), description ? part_of(description->text()) : StepPart::exposed_other);
});
return true;
}

std::uint32_t CommGroups::around(std::uint32_t rank, const std::vector<std::uint32_t>& sizes,
                                 const std::vector<bool>& involved) {
  std::vector<std::uint32_t> ranks{rank};
  std::string name = "involved_dim";
  std::uint32_t apart = 1;
  for (std::size_t i = 0; i < sizes.size(); apart *= sizes[i++]) {
    if (!involved[i]) continue;
    name += fmt::format(" {}", i);
    const std::size_t before = ranks.size();
    const std::uint32_t own = rank / apart % sizes[i];
    for (std::uint32_t place = 0; place < sizes[i]; ++place)
      for (std::size_t one = 0; place != own && one < before; ++one)
        ranks.push_back(ranks[one] - own * apart + place * apart);
  }
  std::sort(ranks.begin(), ranks.end());
  const std::uint32_t group = add(name, std::move(ranks), StepPart::exposed_other);
  dimensions_.try_emplace(group, involved);
  return group;
}

std::optional<std::uint32_t> CommGroups::find(std::uint32_t rank, const std::string& name) const {
  if (name.empty() || name == "0") return 0;
  if (const auto listed = listed_.find({rank, name}); listed != listed_.end()) return listed->second;
  if (const auto of_file = of_file_.find(name); of_file != of_file_.end()) return of_file->second;
  return std::nullopt;
}

}  // namespace manyworlds::experiments::chakra
