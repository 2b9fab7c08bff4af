#include "experiments/model_keys/expert_groups.hpp"

#include <fmt/format.h>

namespace manyworlds::experiments::models {

void read_expert_groups(ConfigReader& reader) {
  const std::string method = reader.text({"topk_method"}, "");
  const std::int64_t groups = reader.integer({"n_group"}, 1), chosen = reader.integer({"topk_group"}, 0);
  const std::int64_t experts = reader.setting("experts"), per_token = reader.setting("experts_per_token");
  if (experts == 0 || groups <= 1 || chosen == 0 || method == "greedy") return;
  if (experts % groups != 0)
    reader.fail(reader.find({"n_group"}),
                fmt::format("'n_group' is {}, which does not divide the {} experts", groups, experts));
  if (chosen > groups)
    reader.fail(reader.find({"topk_group"}),
                fmt::format("'topk_group' is {}, more than 'n_group', {}", chosen, groups));
  if (per_token > experts / groups * chosen)
    reader.fail(reader.find({"topk_group"}),
                fmt::format("'topk_group' is {}, and so many groups have {} experts, fewer than the {} of a token",
                            chosen, experts / groups * chosen, per_token));
  reader.take("expert_groups", {"n_group"});
  reader.take("groups_per_token", {"topk_group"});
}

}  // namespace manyworlds::experiments::models
