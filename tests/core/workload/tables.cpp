// Embedding tables, their interactions and the layers around them: against loops that look up, multiply and place one
// by one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/memory/footprint.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/tables/table_plan.hpp"
#include "core/workload/tables/table_traffic.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;

Model samples_model() {
  Model model;
  model.hidden = 256, model.vocabulary = 1, model.sequence = 1, model.position = Position::none;
  model.tied_embeddings = false, model.dropout = false, model.activation = Activation::relu;
  return model;
}

/// A model of one part, which is on no residual stream.
Model of_part(const std::string& type, const OptionSet& own) {
  const Model model = samples_model();
  BranchOptions bare;
  bare.norms = BranchNorms::none, bare.residual = false;
  Model result = described(model, {{branch_of(model, type, own, bare)}}, {0});
  auto ends = std::make_shared<Architecture>(*result.architecture);
  ends->embedding = ends->head = false;
  result.architecture = ends;
  return result;
}

/// `ranks` data-parallel ranks of `samples` samples each, which share tables out.
Strategy shared_by(I ranks, I samples) {
  Strategy strategy = layout(1, 1, samples, ranks * samples);
  strategy.dp = strategy.ep = ranks;
  return strategy;
}

std::vector<Operator> operators_of(const Model& model, const Strategy& strategy, I rank = 0) {
  return layer_operators(model, strategy, model.layer_kind(0), rank);
}

struct Work {
  I flops = 0, bytes = 0;
};
std::map<std::string, Work> kernels_of(const std::vector<Operator>& operators, OpList Operator::*direction) {
  std::map<std::string, Work> all;
  for (const Operator& each : operators)
    for (const WorkItem& item : each.*direction)
      if (const KernelWork* kernel = item.kernel()) {
        Work& work = all[std::string(kernel->shape.name)];
        work.flops += kernel->shape.flops, work.bytes += kernel->shape.bytes;
      }
  return all;
}
I flops_of(const std::vector<Operator>& operators, OpList Operator::*direction) {
  I sum = 0;
  for (const auto& [name, work] : kernels_of(operators, direction)) sum += work.flops;
  return sum;
}

/// A collective, and what rank `rank` sends of it to other ranks and receives from them.
struct Traffic {
  collective::Kind kind;
  I sent = 0, received = 0;
};
std::map<std::string, Traffic> collectives_of(const std::vector<Operator>& operators, OpList Operator::*direction,
                                              I ranks, I rank) {
  std::map<std::string, Traffic> all;
  for (const Operator& each : operators)
    for (const WorkItem& item : each.*direction)
      if (const CollectiveStart* start = item.start()) {
        CHECK(start->role == Role::expert);
        const I own = start->split.even() ? start->bytes / ranks : start->split.bytes[static_cast<std::size_t>(rank)];
        const I others = start->bytes - own, own_to_others = own * (ranks - 1);
        const bool by_source = start->split.by_source;
        all[std::string(start->name)] = {start->kind, by_source ? own_to_others : others,
                                         by_source ? others : own_to_others};
      }
  return all;
}

const OptionSet kFour{{"rows", std::string("1000+400+90+10")},
                      {"lookups", std::string("2+1+5+1")},
                      {"width", I{32}},
                      {"weight_bytes", I{4}}};

OptionSet four(const std::string& sharding) {
  OptionSet own = kFour;
  own["sharding"] = sharding;
  return own;
}

const std::vector<Table> kTables{{1000, 2}, {400, 1}, {90, 5}, {10, 1}};

}  // namespace

TEST_CASE("dot products of features take the FLOPs of their loops, gradients included") {
  const I samples = 3, features = 5, width = 4;
  I forward = 0, backward = 0;
  for (I sample = 0; sample < samples; ++sample)
    for (I a = 0; a < features; ++a)
      for (I b = 0; b < features; ++b)
        for (I i = 0; i < width; ++i) {
          forward += 2;   // Z[a][b] += T[a][i] T[b][i]
          backward += 2;  // dT[a][i] += dZ[a][b] T[b][i]
          backward += 2;  // dT[b][i] += dZ[a][b] T[a][i]
        }
  const Model model = of_part("dot_interaction", {{"features", features}, {"width", width}});
  const auto layer = operators_of(model, shared_by(1, samples));
  CHECK(flops_of(layer, &Operator::forward) == forward);
  CHECK(flops_of(layer, &Operator::backward) == backward);
  CHECK(model_parameters(model) == 0);
  // Saved: the features, from which the backward pass has everything.
  I saved = 0;
  for (const Operator& each : layer) saved += each.saved_bytes;
  CHECK(saved == 2 * samples * features * width);
}

TEST_CASE("a low-rank cross network takes the FLOPs of its loops, gradients included") {
  const I samples = 3, all = 5 * 4, rank = 6, layers = 2;
  I forward = 0, backward = 0, weights = 0;
  for (I layer = 0; layer < layers; ++layer) {
    for (I sample = 0; sample < samples; ++sample)
      for (I r = 0; r < rank; ++r)
        for (I i = 0; i < all; ++i) {
          forward += 2 + 2;   // v[r] += V[r][i] x[i], u[i] += W[i][r] v[r]
          backward += 2 + 2;  // dv[r] += W[i][r] du[i], dx[i] += V[r][i] dv[r]
          backward += 2 + 2;  // dW[i][r] += du[i] v[r], dV[r][i] += dv[r] x[i]
        }
    weights += 2 * rank * all + all;
  }
  const Model model =
      of_part("cross_interaction", {{"features", I{5}}, {"width", I{4}}, {"rank", rank}, {"layers", layers}});
  const auto layer = operators_of(model, shared_by(1, samples));
  CHECK(flops_of(layer, &Operator::forward) == forward);
  CHECK(flops_of(layer, &Operator::backward) == backward);
  CHECK(model_parameters(model) == weights);
}

TEST_CASE("linear layers take the FLOPs of their loops, without gradients of data") {
  const std::vector<I> widths{7, 5, 3};
  const I samples = 4, inputs = 6;
  I forward = 0, input_gradients = 0, weights = 0, in = inputs;
  for (const I out : widths) {
    for (I sample = 0; sample < samples; ++sample)
      for (I i = 0; i < in; ++i)
        for (I o = 0; o < out; ++o) forward += 2, input_gradients += 2;
    weights += in * out + out, in = out;
  }
  const auto own = [&](const char* in_name, const char* out_name) {
    return OptionSet{{in_name, inputs}, {out_name, std::string("7+5+3")}};
  };
  const Model model = of_part("perceptron", own("inputs", "widths"));
  const auto layer = operators_of(model, shared_by(1, samples));
  CHECK(flops_of(layer, &Operator::forward) == forward);
  CHECK(flops_of(layer, &Operator::backward) == forward + input_gradients);
  CHECK(model_parameters(model) == weights);
  OptionSet beside = own("dense_inputs", "dense_widths");
  beside["rows"] = std::string("8"), beside["width"] = I{3};
  const auto of_data = operators_of(of_part("tables", beside), shared_by(1, samples));
  CHECK(flops_of(of_data, &Operator::forward) == forward);
  CHECK(flops_of(of_data, &Operator::backward) == forward + input_gradients - 2 * samples * inputs * 7);
}

TEST_CASE("look-ups read the rows, indices and sums of a plain loop") {
  // No row is looked up twice, as in the bound, if the tables are large; a table is read once at most.
  const I samples = 16, ranks = 4, width = 32;
  for (I rank = 0; rank < ranks; ++rank) {
    const TableSet set{kTables, width, {TableSharding::table, 0, 7}, 4, TableOptimizer::rowwise_adagrad};
    const TablePlan plan = set.plan(ranks);
    I forward = 0, update = 0;
    for (const TableShard& shard : plan.placed[static_cast<std::size_t>(rank)]) {
      std::set<I> seen;
      I next = 0;
      for (I sample = 0; sample < ranks * samples; ++sample) {
        for (I lookup = 0; lookup < kTables[shard.table].lookups; ++lookup) {
          const I row = next++ % kTables[shard.table].rows;
          forward += 8;                 // its index
          update += 8 + 4 + 2 * width;  // the index, the sample's number, the gradient of its sum
          if (!seen.insert(row).second) continue;
          forward += 4 * width;
          update += 2 * (4 * width + 32);  // row and state, read and written; a state of 4 bytes is in a sector of 32
        }
        forward += 2 * width;  // the sum
      }
    }
    const TableTraffic traffic = shared_traffic(set, plan, rank, samples);
    CHECK(traffic.forward_bytes() == forward);
    CHECK(traffic.update_bytes() == update);
    OptionSet own = four("table");
    const auto layer = operators_of(of_part("tables", own), shared_by(ranks, samples), rank);
    CHECK(kernels_of(layer, &Operator::forward)["table_lookup"].bytes == forward);
    CHECK(kernels_of(layer, &Operator::backward)["table_update"].bytes == update);
    CHECK(flops_of(layer, &Operator::forward) == 0);
  }
}

TEST_CASE("sums travel as many bytes as a loop over samples, tables and ranks counts, and their gradients back") {
  const I samples = 16, ranks = 4, width = 32;
  for (const auto& [name, sharding] :
       {std::pair{"table", TableSharding::table}, {"column", TableSharding::column}, {"mixed", TableSharding::mixed}}) {
    CAPTURE(name);
    const TablePlan plan = plan_tables(kTables, width, {sharding, 0, 7}, ranks);
    std::vector<std::vector<I>> bytes(4, std::vector<I>(4, 0));  // by owner and by rank of the sample
    for (I owner = 0; owner < ranks; ++owner)
      for (const TableShard& shard : plan.placed[static_cast<std::size_t>(owner)])
        for (I of = 0; of < ranks; ++of)
          for (I sample = 0; sample < samples; ++sample)
            bytes[static_cast<std::size_t>(owner)][static_cast<std::size_t>(of)] += 2 * shard.columns;
    for (I rank = 0; rank < ranks; ++rank) {
      I sent = 0, received = 0;
      for (I other = 0; other < ranks; ++other)
        if (other != rank) {
          sent += bytes[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)];
          received += bytes[static_cast<std::size_t>(other)][static_cast<std::size_t>(rank)];
        }
      const auto layer = operators_of(of_part("tables", four(name)), shared_by(ranks, samples), rank);
      const auto forward = collectives_of(layer, &Operator::forward, ranks, rank),
                 backward = collectives_of(layer, &Operator::backward, ranks, rank);
      CHECK(forward.at("table_sums").kind == collective::Kind::all_to_all);
      CHECK(forward.at("table_sums").sent == sent);
      CHECK(forward.at("table_sums").received == received);
      CHECK(backward.at("table_gradients").sent == received);
      CHECK(backward.at("table_gradients").received == sent);
    }
  }
}

TEST_CASE("partial sums of rows are reduce-scattered, gradients gathered, and replicated tables summed by replicas") {
  const I samples = 16, ranks = 4, width = 32, rows = 1000 + 400 + 90 + 10;
  const auto starts = [&](const Model& model, OpList Operator::*direction) {
    std::vector<std::pair<collective::Kind, I>> all;
    for (const Operator& each : operators_of(model, shared_by(ranks, samples)))
      for (const WorkItem& item : each.*direction)
        if (item.start()) all.emplace_back(item.start()->kind, item.start()->bytes);
    return all;
  };
  using Starts = std::vector<std::pair<collective::Kind, I>>;
  const Model by_row = of_part("tables", four("row")), replicated = of_part("tables", four("replicated"));
  const I bytes = 2 * ranks * samples * 4 * width;  // sums of all tables for the samples of all ranks
  CHECK(starts(by_row, &Operator::forward) == Starts{{collective::Kind::reduce_scatter, bytes}});
  CHECK(starts(by_row, &Operator::backward) == Starts{{collective::Kind::all_gather, bytes}});
  CHECK(starts(replicated, &Operator::forward).empty());
  CHECK(starts(replicated, &Operator::backward).empty());
  // Gradients that replicas sum: none of tables that are shared out, all of replicated ones.
  CHECK(stage_parameters(by_row, shared_by(ranks, samples), 0).total() == 0);
  CHECK(stage_parameters(replicated, shared_by(ranks, samples), 0).dense == rows * width);
  CHECK(stage_work_without_costs(replicated, shared_by(ranks, samples), {0, 0}).parts.at(1).summed().dense ==
        rows * width);
  CHECK(model_parameters(by_row) == rows * width);
  CHECK(model_parameters(replicated) == rows * width);
  CHECK(active_parameters(by_row) == (2 + 1 + 5 + 1) * width);
}

TEST_CASE("ranks hold every weight of the tables once, and replicated tables on each") {
  const I width = 32, rows = 1000 + 400 + 90 + 10;
  for (const char* sharding : {"table", "column", "mixed", "row"})
    for (const I ranks : {1, 2, 4, 8}) {
      CAPTURE(sharding, ranks);
      const Model model = of_part("tables", four(sharding));
      const SharedTables& tables = *model.architecture->blocks[0].branches[0].part->tables();
      I weights = 0, largest = 0;
      for (I rank = 0; rank < ranks; ++rank) {
        const I held = table_bytes(model, shared_by(ranks, 8), {0, rank}).weights;
        CHECK(held == tables.bytes_on(ranks, rank).weights);
        weights += held, largest = std::max(largest, held);
      }
      const I shares = std::string(sharding) == "row" ? 4 * width * 4 * (ranks - 1) : 0;  // less than a row each
      CHECK(weights >= 4 * rows * width);
      CHECK(weights <= 4 * rows * width + shares);
      // The memory of a step is that of the rank with most.
      const auto peak = memory::peak(model, shared_by(ranks, 8), round_gpu());
      CHECK(peak.weights == largest);
    }
}

TEST_CASE("the optimizer of a table has its states: none, one for a row, one or two for a weight") {
  const I rows = 1500, width = 32;
  const std::map<std::string, I> expected{
      {"sgd", 0}, {"rowwise_adagrad", 4 * rows}, {"adagrad", 4 * rows * width}, {"adam", 8 * rows * width}};
  for (const auto& [name, bytes] : expected) {
    OptionSet own = four("table");
    own["optimizer"] = name;
    CHECK(table_bytes(of_part("tables", own), shared_by(1, 8), {0, 0}).optimizer == bytes);
  }
}

TEST_CASE("tables are placed by load: no rank has more than the mean and one table") {
  std::uint64_t state = 1;
  const auto drawn = [&](I most) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<I>(state >> 33) % most + 1;
  };
  for (int round = 0; round < 50; ++round) {
    std::vector<Table> tables;
    for (I i = drawn(40); i > 0; --i) tables.push_back({drawn(1'000'000), drawn(100)});
    const I ranks = drawn(16), width = 64;
    for (const TableSharding sharding : {TableSharding::table, TableSharding::mixed}) {
      const TablePlan plan = plan_tables(tables, width, {sharding, 0, 7}, ranks);
      double sum = 0, heaviest = 0, largest = 0;
      I columns = 0;
      for (const auto& shards : plan.placed) {
        double load = 0;
        for (const TableShard& shard : shards) {
          const double one = static_cast<double>((tables[shard.table].lookups + 7) * shard.columns);
          CHECK(shard.rows == tables[shard.table].rows);
          load += one, largest = std::max(largest, one), columns += shard.columns;
        }
        sum += load, heaviest = std::max(heaviest, load);
      }
      CHECK(columns == width * static_cast<I>(tables.size()));
      CHECK(heaviest <= sum / static_cast<double>(ranks) + largest);  // Graham 1969
    }
  }
}

TEST_CASE("tables with few rows are replicated, whatever is done with the others") {
  for (const TableSharding sharding : {TableSharding::table, TableSharding::row, TableSharding::column}) {
    const TablePlan plan = plan_tables(kTables, 32, {sharding, 90, 7}, 2);
    CHECK(plan.replicated == std::vector<std::size_t>{2, 3});
  }
}
