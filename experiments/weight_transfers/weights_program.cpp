#include "experiments/weight_transfers/weights_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::phases {
namespace {

std::string list_text(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

/// Returns the ranks of GPUs, which are the places of these in `gpus`.
std::vector<std::uint32_t> ranks_of(const std::vector<std::uint32_t>& some, const std::vector<std::uint32_t>& gpus) {
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t gpu : some)
    ranks.push_back(static_cast<std::uint32_t>(std::lower_bound(gpus.begin(), gpus.end(), gpu) - gpus.begin()));
  return ranks;
}

}  // namespace

std::string weights_program(const WeightsRoute& route, std::int64_t bytes) {
  MANYWORLDS_CHECK(route.moves(), "a program without operations");
  std::set<std::uint32_t> all(route.receivers.begin(), route.receivers.end());
  for (const auto& group : route.gatherers) all.insert(group.begin(), group.end());
  const std::vector<std::uint32_t> gpus(all.begin(), all.end());
  const auto count = static_cast<std::uint32_t>(gpus.size());
  const bool is_whole = gpus.front() == 0 && gpus.back() == count - 1;

  std::string text = fmt::format("{{\"manyworlds_program\":1,\"name\":\"weights\"{}}}\n",
                                 is_whole ? "" : ",\"gpu_of_rank\":" + list_text(gpus));
  std::map<std::uint32_t, std::string> operations;  // by rank
  if (!route.gatherers.empty()) {
    text += "{\"dimension\":\"shards\",\"part\":\"exposed_other\"}\n";
    std::vector<std::string> groups;
    for (const auto& group : route.gatherers) {
      const std::vector<std::uint32_t> ranks = ranks_of(group, gpus);
      groups.push_back(list_text(ranks));
      for (const std::uint32_t rank : ranks)
        operations[rank] += fmt::format(
            "{{\"collective\":\"all_gather\",\"in\":\"shards\",\"bytes\":{},\"stream\":\"compute\"}}\n", bytes);
    }
    text += fmt::format("{{\"groups\":\"shards\",\"ranks\":[{}]}}\n", fmt::join(groups, ","));
  }
  if (!route.receivers.empty()) {
    const std::vector<std::uint32_t> ranks = ranks_of(route.receivers, gpus);
    text += "{\"dimension\":\"copies\",\"part\":\"exposed_other\"}\n";
    text += fmt::format("{{\"groups\":\"copies\",\"ranks\":[{}]}}\n", list_text(ranks));
    for (const std::uint32_t rank : ranks)
      operations[rank] += fmt::format(
          "{{\"collective\":\"broadcast\",\"in\":\"copies\",\"bytes\":{},\"root\":0,\"stream\":\"compute\"}}\n", bytes);
  }
  std::map<std::string, std::vector<std::uint32_t>> ranks_by_operations;
  for (const auto& [rank, lines] : operations) ranks_by_operations[lines].push_back(rank);
  for (const auto& [lines, ranks] : ranks_by_operations)
    text += fmt::format("{{\"program\":\"part {}\",\"ranks\":\"{}\",\"streams\":[\"compute\"]}}\n", ranks.front(),
                        programs::ranks_text(ranks)) +
            lines;
  return text;
}

}  // namespace manyworlds::experiments::phases
