// Embedding tables (Naumov et al. 2019, DLRM; Mudigere et al. 2022): each sample looks up rows of every
// table, whose sum is a feature of it. The ranks of data parallelism share the tables out, as those of expert
// parallelism: a rank looks up the rows that it has for the samples of all ranks. Sums of whole tables and of columns
// travel by an all-to-all, and so do their gradients; partial sums of rows are reduce-scattered, and gradients
// gathered. Linear layers over the dense inputs run meanwhile, in both directions.
#include "core/workload/operators/part.hpp"
#include "core/workload/tables/perceptron.hpp"
#include "core/workload/tables/table_traffic.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using collective::Split;
using compute::memory_bound;

struct TableOptions {
  std::vector<std::int64_t> rows, lookups;
  std::int64_t repeat = 1;
  std::int64_t width = 128;
  TableSharding sharding = TableSharding::table;
  std::int64_t replicated_rows = 0;
  double memory_ratio = 7;
  std::int64_t weight_bytes = 4;
  TableOptimizer optimizer = TableOptimizer::rowwise_adagrad;
  std::int64_t index_bytes = 0;
  std::int64_t dense_inputs = 0;
  std::vector<std::int64_t> dense_widths;

  std::int64_t lookups_of(std::size_t table) const {
    if (lookups.size() < 2) return lookups.empty() ? 1 : lookups[0];
    return table < lookups.size() ? lookups[table] : 1;
  }
};

const OptionTable<TableOptions>& table_options() {
  static const OptionTable<TableOptions> table{
      integer_list("rows", &TableOptions::rows, "rows of each table", {1, 1e12}),
      integer_list("lookups", &TableOptions::lookups,
                   "rows of each table that a sample looks up, or one number for all; none: one each", {1, 100'000}),
      option("repeat", &TableOptions::repeat, "times that these tables are there", {1, 100'000}),
      option("width", &TableOptions::width, "columns of a table", {1, 65'536}),
      choice(
          "sharding", &TableOptions::sharding, {"table", "row", "column", "replicated", "mixed"},
          "what ranks share out: whole tables, rows or columns of each, nothing; or whole tables and columns of those "
          "that are more than one rank's share"),
      option("replicated_rows", &TableOptions::replicated_rows, "every rank has tables with at most so many rows",
             {0, 1e12}),
      option("memory_ratio", &TableOptions::memory_ratio,
             "look-ups that take as long as it takes to send their sum: the load by which tables are placed", {0, 1e6}),
      option("weight_bytes", &TableOptions::weight_bytes, "bytes of an element of a table that ranks share out", {1, 8},
             "bytes"),
      choice("optimizer", &TableOptions::optimizer, {"sgd", "rowwise_adagrad", "adagrad", "adam"},
             "optimizer of tables that ranks share out"),
      option("index_bytes", &TableOptions::index_bytes,
             "bytes of an index that a rank sends to where its table is; 0: ranks read the indices of their tables",
             {0, 8}, "bytes"),
      option("dense_inputs", &TableOptions::dense_inputs, "dense inputs of a sample; 0: none", {0, 10'000'000}),
      integer_list("dense_widths", &TableOptions::dense_widths,
                   "outputs of linear layers over the dense inputs, which run while sums travel", {1, 1'000'000}),
  };
  return table;
}

class TablesPart final : public LayerPart, public SharedTables {
 public:
  explicit TablesPart(const TableOptions& options)
      : options_(options), dense_{options.dense_inputs, options.dense_widths} {
    for (std::int64_t i = 0; i < options.repeat; ++i)
      for (std::size_t table = 0; table < options.rows.size(); ++table)
        set_.tables.push_back({options.rows[table], options.lookups_of(table)});
    set_.width = options.width;
    set_.sharing = {options.sharding, options.replicated_rows, options.memory_ratio};
    set_.weight_bytes = options.weight_bytes;
    set_.optimizer = options.optimizer;
  }

  BranchNames branch_names() const override { return {"tables_norm", "tables_residual", recompute::layernorm, 0}; }
  const SharedTables* tables() const override { return this; }

  std::string missing_size(const Model& model) const override {
    if (options_.rows.empty()) return "rows";
    if (options_.lookups.size() > 1 && options_.lookups.size() != options_.rows.size())
      return "as many lookups as rows";
    if (dense_.widths.empty() != (dense_.inputs == 0)) return dense_.inputs == 0 ? "dense_inputs" : "dense_widths";
    if (!dense_.widths.empty() && dense_.widths.back() != options_.width) return "dense_widths that end in width";
    return model.sequence == 1 ? "" : "sequence 1";
  }

  /// Layers over the dense inputs, and the tables that every rank has.
  PartParameters parameters(const Model&) const override {
    return {0, dense_.parameters() + replicated_rows() * options_.width};
  }
  std::int64_t table_parameters() const override {
    std::int64_t rows = 0;
    for (const Table& table : set_.tables) rows += table.rows;
    return (rows - replicated_rows()) * options_.width;
  }
  std::int64_t looked_up_parameters() const override {
    std::int64_t rows = 0;
    for (const Table& table : set_.tables)
      if (!is_replicated(table, set_.sharing)) rows += table.lookups;
    return rows * options_.width;
  }
  TableBytes bytes_on(std::int64_t ranks, std::int64_t rank) const override {
    return held_bytes(set_, set_.plan(ranks), rank);
  }
  bool ranks_differ(std::int64_t ranks) const override {
    const TablePlan plan = set_.plan(ranks);
    const auto share = [&](std::int64_t rank) {
      const TableTraffic traffic = shared_traffic(set_, plan, rank, 1);
      const TableBytes held = held_bytes(set_, plan, rank);
      return std::vector{traffic.lookups, traffic.rows, traffic.pooled, held.weights, held.optimizer};
    };
    for (std::int64_t rank = 1; rank < ranks; ++rank)
      if (share(rank) != share(0)) return true;
    return false;
  }

  std::vector<ShardedSize> sharded_sizes(const Model&) const override {
    if (options_.sharding != TableSharding::column) return {};
    return {{"width", options_.width, ShardAxis::expert}};
  }

  PartFormulas formulas(const Model&) const override {
    std::string parameters = dense_.parameters_formula();
    if (replicated_rows() > 0) parameters += " + " + std::to_string(replicated_rows()) + " * width";
    return {parameters, "", "2 * sequence * (" + dense_.products_formula() + ")"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const TablePlan plan = set_.plan(on.strategy.ep);
    const std::int64_t samples = on.shapes.sp_region_tokens;
    const TableExchange exchange = table_exchange(set_, plan, samples, options_.index_bytes);
    Operator departure = look_up(plan, on), arrival;
    arrival.name = "table_exchange";
    if (on.strategy.ep > 1) {
      send_sums(departure.forward, exchange, true);
      join(arrival.forward);
      send_sums(arrival.backward, exchange, false);
    }
    operators.push_back(departure);
    add_perceptron(operators, on, dense_, "dense_layers", true);
    operators.push_back(arrival);
  }

  /// Gradients of the sums that a rank computed, its indices sorted and not; and those of the dense layers.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const TablePlan plan = set_.plan(on.strategy.ep);
    const TableTraffic shared = shared_traffic(set_, plan, on.expert_rank, on.shapes.sp_region_tokens);
    return 2 * shared.pooled + 2 * (TableTraffic::kIndexBytes + TableTraffic::kSampleBytes) * shared.lookups +
           dense_.working_bytes(on.shapes);
  }

 private:
  std::int64_t replicated_rows() const {
    std::int64_t rows = 0;
    for (const Table& table : set_.tables) rows += is_replicated(table, set_.sharing) ? table.rows : 0;
    return rows;
  }

  /// Look-ups, and the update of the rows. Rows of replicated tables have gradients in fp32, to which those of look-ups
  /// are added, and which replicas sum with those of all other weights.
  Operator look_up(const TablePlan& plan, const PartOnRank& on) const {
    const std::int64_t samples = on.shapes.sp_region_tokens;
    const TableTraffic shared = shared_traffic(set_, plan, on.expert_rank, samples),
                       own = replicated_traffic(set_, plan, samples);
    const TableExchange exchange = table_exchange(set_, plan, samples, options_.index_bytes);
    Operator result;
    result.name = "table_lookup";
    result.saved_bytes = TableTraffic::kIndexBytes * (shared.lookups + own.lookups);
    result.weight_gradient_input_bytes = result.saved_bytes + 2 * (shared.pooled + own.pooled);
    const bool crosses_ranks = on.strategy.ep > 1;
    if (crosses_ranks && exchange.indices > 0) {
      start(result.forward, "table_indices", Kind::all_to_all, exchange.indices, Role::expert, {exchange.to_ranks});
      join(result.forward);
    }
    const auto add = [](OpList& ops, std::string_view name, std::int64_t bytes, bool gradient) {
      if (bytes == 0) return;
      ops.push_back(gradient ? weight_gradient_kernel(memory_bound(name, bytes)) : kernel(memory_bound(name, bytes)));
    };
    add(result.forward, "replicated_lookup", own.forward_bytes(), false);
    add(result.forward, "table_lookup", shared.forward_bytes(), false);
    if (crosses_ranks && (exchange.sums > 0 || exchange.by_row > 0)) join(result.backward);
    add(result.backward, "replicated_gradient",
        own.gradients_read + TableTraffic::kIndexBytes * own.lookups + 4 * own.weights_read, true);
    add(result.backward, "table_sort", shared.sort_bytes(), true);
    add(result.backward, "table_update", shared.update_bytes(), true);
    return result;
  }

  /// Starts the exchange of sums, or of their gradients.
  static void send_sums(OpList& ops, const TableExchange& exchange, bool forward) {
    const std::string_view name = forward ? "table_sums" : "table_gradients";
    if (exchange.sums > 0)
      start(ops, name, Kind::all_to_all, exchange.sums, Role::expert,
            Split{exchange.by_rank, forward && !exchange.by_rank.empty()});
    if (exchange.by_row > 0)
      start(ops, name, forward ? Kind::reduce_scatter : Kind::all_gather, exchange.by_row, Role::expert);
  }

  TableOptions options_;
  Perceptron dense_;
  TableSet set_;
};

}  // namespace

PartType tables_type() {
  return {"tables",
          "embedding tables, and layers over dense inputs beside them",
          table_options().infos(),
          make_part<TablesPart, table_options>,
          {{"rows", std::string("4096+1024+512+64")}, {"width", std::int64_t{32}}}};
}

}  // namespace manyworlds::core::workload
