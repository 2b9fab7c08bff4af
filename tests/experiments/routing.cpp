// Routing as users give it: balanced, Zipf's law, and measured tables.
#include <catch2/catch.hpp>

#include "core/workload/parts/expert_load.hpp"
#include "experiments/import/measured_routing.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::StartsWith;

namespace {

/// 4 layers of 4 experts, of which a token visits 2, over 4 ranks.
const std::string kExperts = with(with(kSingle, "sequence: 32}", "sequence: 32, experts: 4, experts_per_token: 2}"),
                                  "{tp: 2, pp: 2,", "{tp: 2, pp: 2, sequence_parallel: true, ep: 4,");

std::string refusal(const std::string& text) {
  try {
    import::parse_measured_routing(text, "r.csv");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

struct TableFolder : TemporaryFolder {
  explicit TableFolder(const std::string& table) { put("r.csv", table); }
  std::string set() const { return "routing={measured: {file: " + (path / "r.csv").string() + "}}"; }
};

/// The same load in each of so many layers.
std::string table_of(int layers, const std::vector<int>& tokens) {
  std::string text = "layer,expert,tokens\n";
  for (int layer = 0; layer < layers; ++layer)
    for (std::size_t expert = 0; expert < tokens.size(); ++expert)
      text += fmt::format("{},{},{}\n", layer, expert, tokens[expert]);
  return text;
}

core::workload::Model model_of(const Sweep& sweep, std::size_t experiment = 0) {
  return sweep.experiments.at(experiment).config().configuration.model;
}

}  // namespace

TEST_CASE("a table of loads is read in any order of rows, as tokens or as shares") {
  const auto table = import::parse_measured_routing("expert,layer,tokens\n1,3,5\n0,0,7\n0,3,0\n1,0,9\n", "r.csv");
  CHECK(table == import::RoutingTable{{0, {7, 9}}, {3, {0, 5}}});
  const auto shares = import::parse_measured_routing("layer,expert,share\n2,0,0.25\n2,1,0.75\n", "r.csv");
  REQUIRE(shares.at(2).size() == 2);
  CHECK(shares.at(2)[1] == 3 * shares.at(2)[0]);
}

TEST_CASE("a bad table of loads is refused by file, line and what would be right") {
  const std::string head = "layer,expert,tokens\n";
  CHECK_THAT(refusal(""), StartsWith("r.csv"));
  CHECK_THAT(refusal("layer,expert\n0,0\n"), StartsWith("r.csv:1: ") && Contains("'tokens' and 'share'"));
  CHECK_THAT(refusal("layer,expert,tokens,share\n0,0,1,1\n"), Contains("one of the columns"));
  CHECK_THAT(refusal("layer,tokens\n0,1\n"), Contains("column 'expert' is missing"));
  CHECK_THAT(refusal("layer,expert,token\n0,0,1\n"), Contains("did you mean 'tokens'"));
  CHECK_THAT(refusal(head), StartsWith("r.csv:1: the table has no row"));
  CHECK_THAT(refusal(head + "0,0,1\n0,0,2\n"), StartsWith("r.csv:3: ") && Contains("in line 2 already"));
  CHECK_THAT(refusal(head + "0,0,1\n0,2,2\n"), StartsWith("r.csv:3: ") && Contains("no row for expert 1"));
  CHECK_THAT(refusal(head + "0,1,1\n"), Contains("no row for expert 0"));
  CHECK_THAT(refusal(head + "0,0,0\n0,1,0\n"), Contains("no token goes to any expert of layer 0"));
  CHECK_THAT(refusal(head + "0,0,-1\n"), StartsWith("r.csv:2: tokens must be from 0"));
  CHECK_THAT(refusal(head + "0,0,\n"), Contains("tokens is missing"));
  CHECK_THAT(refusal(head + "0,x,1\n"), StartsWith("r.csv:2: "));
  CHECK_THAT(refusal(head + "99999,0,1\n"), StartsWith("r.csv:2: layer must be from 0 to 9999"));
  CHECK_THAT(refusal("layer,expert,share\n0,0,0.5\n0,1,0.4\n"), Contains("add up to 0.900000, not to 1"));
  CHECK_THAT(refusal("layer,expert,share\n0,0,1.5\n"), Contains("share must be from 0 to 1"));
  CHECK_THAT(refusal("layer,expert,share\n0,0,nan\n"), StartsWith("r.csv:2: "));
}

TEST_CASE("routing is balanced unless it is told, and an axis goes over its kinds and figures") {
  CHECK(model_of(read(kExperts)).routing == nullptr);
  const Sweep sweep = read(kExperts + "axes:\n  routing: [balanced, {zipf: {exponent: 0.5}}, {zipf: {seed: 2}}]\n");
  REQUIRE(sweep.experiments.size() == 3);
  CHECK(model_of(sweep, 0).routing == nullptr);
  CHECK(model_of(sweep, 1).routing->loads == core::workload::zipf_routing(4, 4, 0.5, 1)->loads);
  CHECK(model_of(sweep, 2).routing->loads == core::workload::zipf_routing(4, 4, 1, 2)->loads);
  CHECK_THAT(error_of(kExperts, {"routing={zip: {}}"}), Contains("did you mean 'zipf'"));
  CHECK_THAT(error_of(kExperts, {"routing={zipf: {exponent: 11}}"}), Contains("routing.zipf.exponent"));
  CHECK_THAT(error_of(kExperts, {"routing=measured"}), Contains("'routing.file' is missing"));
}

TEST_CASE("a measured table goes with its sweep, serialized and read back") {
  const TableFolder folder(table_of(4, {30, 20, 10, 40}));
  const Sweep sweep = read(kExperts, {folder.set()});
  const auto routing = model_of(sweep).routing;
  REQUIRE(routing);
  CHECK(routing->loads == std::vector<std::vector<std::int64_t>>{{30, 20, 10, 40}});
  const Sweep again = deserialize(serialize(sweep));
  CHECK(model_of(again).routing->key == routing->key);
  GraphCache graphs;
  CHECK(configure(again.experiments[0], graphs).model.routing->key == routing->key);
  // 32 tokens over 2 tensor ranks go to 2 experts each: 32 rows of a rank.
  const auto result = configure(sweep.experiments[0], graphs);
  const auto load = core::workload::expert_load(result.model, result.strategy, result.model.layer_kind(0));
  CHECK(load.rows == std::vector<std::int64_t>{10, 6, 3, 13});
}

TEST_CASE("a table that does not fit the model is refused with what differs") {
  const auto says = [](const std::string& table, const std::string& text = kExperts) {
    return error_of(text, {TableFolder(table).set()});
  };
  CHECK_THAT(says(table_of(3, {1, 1, 1, 1})), Contains("violates rule routing_fits: ") && Contains("no layer 3"));
  CHECK_THAT(says(table_of(5, {1, 1, 1, 1})), Contains("has a layer 4, and the model has no experts there"));
  CHECK_THAT(says(table_of(4, {1, 1, 1})), Contains("layer 0 has 3 experts in the table, and 4 in the model"));
  CHECK_THAT(says(table_of(4, {6, 2, 1, 1})), Contains("expert 0 of layer 0 has 60.0 % of all") && Contains("50.0 %"));
  CHECK_THAT(says(table_of(4, {1, 1, 1, 1}), kSingle), Contains("routing measured, experts 0"));
  CHECK_THAT(says("layer,expert\n"), Contains("r.csv:1: "));
}

TEST_CASE("what the rule for copies reckons with is the machine's unless it is told") {
  const std::vector<std::string> on{"strategy.hot_experts=true", "routing=zipf"};
  const auto strategy = [&](std::vector<std::string> more) {
    more.insert(more.end(), on.begin(), on.end());
    return read(kExperts, more).experiments.at(0).config().configuration.strategy;
  };
  const auto plain = strategy({});
  const auto gpu = read(kExperts).experiments.at(0).config().configuration.gpu;
  CHECK(plain.hot_expert_tflops == gpu.matrix_tflops * gpu.gemm.front().efficiency);
  CHECK(plain.hot_expert_gbps == 200);
  CHECK(strategy({"strategy.hot_expert_gbps=50"}).hot_expert_gbps == 50);
  CHECK(strategy({"strategy.hot_expert_tflops=11.5"}).hot_expert_tflops == 11.5);
}
