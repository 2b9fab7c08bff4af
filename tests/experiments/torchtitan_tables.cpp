// The tables of torchtitan's own arguments and sizes, beside what its reader knows of them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "experiments/model_keys/carried.hpp"
#include "experiments/settings/find_key.hpp"
#include "experiments/text/text.hpp"
#include "experiments/torchtitan/flavors.hpp"
#include "experiments/torchtitan/key_table.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/torchtitan/";

std::vector<std::vector<std::string>> table(const std::string& name) {
  std::istringstream lines(import::read_text(kFolder + name));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) rows.back().push_back(cell);
  }
  rows.erase(rows.begin());
  return rows;
}

}  // namespace

TEST_CASE("keys and defaults are those of torchtitan's own sources") {
  const KnownNames& known = torchtitan::known_keys();
  std::size_t count = 0;
  for (const auto& row : table("keys.tsv")) {
    INFO(row.at(0));
    const KnownName* key = known.find(row.at(0));
    REQUIRE(key != nullptr);
    // A default that is refused or said in the answer would refuse every file that writes it out.
    std::string value = row.size() > 3 ? row[3] : "";
    if (value == "True" || value == "False") value[0] = static_cast<char>(value[0] + 32);
    std::erase(value, '\'');
    if (key->fate == Fate::refused && value != "None" && value != "[]" && !value.empty())
      CHECK(key->is_harmless(value));
    ++count;
  }
  CHECK(count > 150);
  for (const KnownName& one : known.all()) {
    INFO(one.name);
    std::istringstream keys(one.means);
    for (std::string key; std::getline(keys >> std::ws, key, ',');) CHECK_FALSE(find_key(key, {}).path.empty());
  }
}

TEST_CASE("flavors have the sizes of torchtitan's own arguments") {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> given;
  for (const auto& row : table("flavors.tsv")) given[{row.at(0), row.at(1)}][row.at(2)] = row.size() > 3 ? row[3] : "";
  CHECK(given.size() > 25);
  for (const auto& [name, arguments] : given) {
    INFO(name.first << " " << name.second);
    const torchtitan::Flavor* flavor = torchtitan::find_flavor(name.first, name.second);
    REQUIRE(flavor != nullptr);
    if (!flavor->refused.empty()) continue;
    const auto& sizes = flavor->sizes;
    const auto number = [&, &all = arguments](const std::string& key) {
      const auto found = all.find(key);
      return found == all.end() || found->second == "None" || found->second.empty() ? 0.0 : std::stod(found->second);
    };
    CHECK(static_cast<double>(sizes.layers) == number("n_layers"));
    CHECK(static_cast<double>(sizes.hidden) == number("dim"));
    CHECK(static_cast<double>(sizes.heads) == number("n_heads"));
    CHECK(static_cast<double>(sizes.vocabulary) == number("vocab_size"));
    if (number("n_kv_heads") > 0) CHECK(static_cast<double>(sizes.kv()) == number("n_kv_heads"));
    if (number("head_dim") > 0) CHECK(static_cast<double>(sizes.head_width()) == number("head_dim"));
    const auto tied = arguments.find("enable_weight_tying");
    CHECK(sizes.tied_embeddings == (tied != arguments.end() && tied->second == "True"));
    // FeedForward of llama3: two thirds of 4 x dim, times the multiplier, in whole multiples.
    double ffn = number("hidden_dim") + number("inter_dim");
    if (arguments.count("multiple_of") > 0) {
      const double factor = number("ffn_dim_multiplier") > 0 ? number("ffn_dim_multiplier") : 1;
      const auto width = static_cast<std::int64_t>(factor * static_cast<double>(2 * 4 * sizes.hidden / 3));
      const auto multiple = static_cast<std::int64_t>(number("multiple_of"));
      ffn = static_cast<double>((width + multiple - 1) / multiple * multiple);
    }
    if (ffn > 0) CHECK(static_cast<double>(sizes.ffn()) == ffn);
    const auto carried = [&](const std::string& argument) {
      for (const models::CarriedArgument& one : models::carried_in(flavor->carried))
        if (one.name == argument) return std::stod(one.values.front());
      return 0.0;
    };
    CHECK(carried("rotary-base") == number("rope_theta"));
    CHECK(carried("norm-epsilon") == number("norm_eps"));
    if (name.first == "llama3") CHECK(carried("rope-scaling-factor") == number("rope_scaling_args.scaling_factor"));
    if (sizes.is_latent()) CHECK(carried("rotary-scaling-factor") == number("rope_factor"));
    CHECK(static_cast<double>(sizes.expert_groups) == std::max(number("moe_args.num_expert_groups"), 1.0));
    CHECK(static_cast<double>(sizes.groups_per_token) == number("moe_args.num_limited_groups"));
    if (!sizes.has_experts()) continue;
    CHECK(static_cast<double>(sizes.experts) == number("moe_args.num_experts"));
    CHECK(static_cast<double>(sizes.experts_per_token) == number("moe_args.top_k"));
    CHECK(static_cast<double>(sizes.dense_layers) == number("n_dense_layers"));
    if (number("moe_inter_dim") > 0) {
      CHECK(static_cast<double>(sizes.expert_ffn()) == number("moe_inter_dim"));
      CHECK(static_cast<double>(sizes.shared_ffn_hidden) ==
            number("moe_args.num_shared_experts") * number("moe_inter_dim"));
    }
    if (!sizes.is_latent()) continue;
    CHECK(static_cast<double>(sizes.query_rank) == number("q_lora_rank"));
    CHECK(static_cast<double>(sizes.kv_rank) == number("kv_lora_rank"));
    CHECK(static_cast<double>(sizes.rotary_dim) == number("qk_rope_head_dim"));
    CHECK(static_cast<double>(sizes.value_dim) == number("v_head_dim"));
  }
}
