// Documents: their lengths, how they are packed, and the attention work that they leave, against plain loops.
#include "core/workload/distributions/documents.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "core/memory/footprint.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/document_attention.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using Samples = std::vector<std::vector<std::int64_t>>;

/// One token after the other: (document, rest of it) by token, cut into samples.
Samples cut_by_hand(const std::vector<std::int64_t>& lengths, std::int64_t sequence) {
  std::vector<std::size_t> tokens;
  for (std::size_t document = 0; document < lengths.size(); ++document)
    tokens.insert(tokens.end(), static_cast<std::size_t>(lengths[document]), document);
  Samples samples;
  const auto width = static_cast<std::size_t>(sequence);
  for (std::size_t begin = 0; begin + width <= tokens.size(); begin += width) {
    auto& sample = samples.emplace_back();
    for (std::size_t i = begin; i < begin + width; ++i) {
      if (i == begin || tokens[i] != tokens[i - 1]) sample.push_back(0);
      ++sample.back();
    }
  }
  return samples;
}

/// Each document into the first sample with room, tried one by one.
Samples first_fit_by_hand(const std::vector<std::int64_t>& lengths, std::int64_t sequence) {
  Samples samples;
  const auto used = [](const auto& sample) { return std::accumulate(sample.begin(), sample.end(), std::int64_t{0}); };
  for (const std::int64_t each : lengths) {
    const std::int64_t length = std::min(each, sequence);
    std::size_t at = 0;
    while (at < samples.size() && used(samples[at]) + length > sequence) ++at;
    if (at == samples.size()) samples.emplace_back();
    samples[at].push_back(length);
  }
  for (auto& sample : samples)
    if (used(sample) < sequence) sample.push_back(sequence - used(sample));
  return samples;
}

/// Pairs of queries in [begin, end) of a sample with the keys of their documents.
std::int64_t twice_pairs(const std::vector<std::int64_t>& sample, std::int64_t begin, std::int64_t end,
                         std::int64_t window) {
  std::int64_t at = 0, pairs = 0;
  for (const std::int64_t length : sample)
    for (std::int64_t q = 0; q < length; ++q, ++at)
      // A query's pair with itself counts half, so that a document has half of its square.
      if (at >= begin && at < end) pairs += window == 0 || q < window ? 2 * q + 1 : 2 * window;
  return pairs;
}

std::int64_t twice_pairs(const Documents& documents, std::int64_t window = 0) {
  std::int64_t pairs = 0;
  for (const auto& sample : documents.samples) pairs += twice_pairs(sample, 0, documents.sequence, window);
  return pairs;
}

std::shared_ptr<const Documents> drawn(std::int64_t sequence, double mean = 700, Packing packing = Packing::cut) {
  return pack_documents(lognormal_lengths(mean, 1.2, 3, documents_to_draw(mean, sequence)), sequence, packing);
}

Model documented(std::int64_t sequence = 4'096) {
  Model model = llama(2, 1'024, 16, 4, 2'816, 32'000);
  model.sequence = sequence;
  model.documents = drawn(sequence);
  return model;
}

Strategy fused(std::int64_t cp = 1, ContextExchange exchange = ContextExchange::ring) {
  Strategy strategy;
  strategy.cp = cp;
  strategy.cp_comm = exchange;
  strategy.stack.attention = AttentionKernel::flash;
  return strategy;
}

std::vector<compute::Kernel> attention_kernels(const Model& model, const Strategy& strategy, LayerKind kind = {}) {
  std::vector<compute::Kernel> kernels;
  for (const Operator& each : layer_operators(model, strategy, kind))
    for (const OpList* ops : {&each.forward, &each.backward})
      for (const WorkItem& work : *ops)
        if (const KernelWork* kernel = work.kernel(); kernel != nullptr && kernel->shape.name == "attention")
          kernels.push_back(kernel->shape);
  return kernels;
}

std::int64_t flops_of(const std::vector<compute::Kernel>& kernels) {
  std::int64_t sum = 0;
  for (const compute::Kernel& each : kernels) sum += each.flops;
  return sum;
}

}  // namespace

TEST_CASE("the quantile of a normal variable is the inverse of its distribution") {
  for (const double share : {1e-9, 1e-4, 0.02, 0.0243, 0.3, 0.5, 0.77, 0.98, 0.9999, 1 - 1e-9})
    CHECK(0.5 * std::erfc(-normal_quantile(share) / std::sqrt(2.0)) == Approx(share).epsilon(1e-7));
}

TEST_CASE("drawn lengths have the mean and the deviation that they are told, in an order that the seed draws") {
  const std::vector<std::int64_t> lengths = lognormal_lengths(900, 0.8, 5, 20'000);
  double sum = 0, logs = 0, squares = 0;
  for (const std::int64_t each : lengths) {
    const double log = std::log(static_cast<double>(each));
    sum += static_cast<double>(each), logs += log, squares += log * log;
  }
  const double n = 20'000;
  CHECK(sum / n == Approx(900).epsilon(0.002));
  CHECK(std::sqrt(squares / n - logs / n * (logs / n)) == Approx(0.8).epsilon(0.002));
  CHECK(lognormal_lengths(900, 0.8, 5, 20'000) == lengths);
  std::vector<std::int64_t> other = lognormal_lengths(900, 0.8, 6, 20'000), sorted = lengths;
  CHECK(other != lengths);
  std::sort(other.begin(), other.end());
  std::sort(sorted.begin(), sorted.end());
  CHECK(other == sorted);
  CHECK(lognormal_lengths(100, 0, 1, 3) == std::vector<std::int64_t>{100, 100, 100});
}

TEST_CASE("a table's lengths are drawn as often as it counts them") {
  const std::vector<std::pair<std::int64_t, std::int64_t>> table{{10, 3}, {20, 1}, {500, 6}};
  std::map<std::int64_t, int> times;
  for (const std::int64_t each : tabled_lengths(table, 1, 1'000)) ++times[each];
  CHECK(times == std::map<std::int64_t, int>{{10, 300}, {20, 100}, {500, 600}});
  CHECK(mean_length(table) == Approx((30 + 20 + 3'000) / 10.0));
}

TEST_CASE("documents are cut where a sample ends, or go whole into the first one with room") {
  for (std::int64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    const std::vector<std::int64_t> lengths = lognormal_lengths(150, 1.5, seed, 400);
    CHECK(pack_documents(lengths, 512, Packing::cut)->samples == cut_by_hand(lengths, 512));
    const auto fitted = pack_documents(lengths, 512, Packing::first_fit);
    CHECK(fitted->samples == first_fit_by_hand(lengths, 512));
    std::int64_t tokens = 0;
    for (const std::int64_t each : lengths) tokens += std::min<std::int64_t>(each, 512);
    CHECK(fitted->padding == std::ssize(fitted->samples) * 512 - tokens);
  }
}

TEST_CASE("documents as long as a sample are none") {
  CHECK(pack_documents(std::vector<std::int64_t>(9, 512), 512, Packing::cut) == nullptr);
  CHECK(pack_documents(std::vector<std::int64_t>(9, 1'024), 512, Packing::cut) == nullptr);
  CHECK(pack_documents(std::vector<std::int64_t>(9, 700), 512, Packing::first_fit) == nullptr);
  CHECK(pack_documents(std::vector<std::int64_t>(9, 700), 512, Packing::cut) != nullptr);
}

TEST_CASE("pairs are those of queries and keys of one document, as ranks of a context share them") {
  for (const std::int64_t window : {0, 300})
    for (const std::int64_t samples : {1, 3}) {
      CAPTURE(window, samples);
      const auto documents = drawn(4'096);
      const double mean =
          static_cast<double>(twice_pairs(*documents, window)) / 2 / static_cast<double>(documents->samples.size());
      const auto pairs = [&](DocumentShare share, std::int64_t cp) {
        return static_cast<double>(document_work(*documents, samples, window, share, cp).pairs);
      };
      const double all = mean * static_cast<double>(samples);
      CHECK(pairs(DocumentShare::whole, 1) == Approx(all).margin(0.5));
      CHECK(4 * pairs(DocumentShare::chunks, 4) == Approx(all).margin(2));
      CHECK(16 * pairs(DocumentShare::ring_block, 4) == Approx(all).margin(8));
      CHECK(document_work(*documents, samples, window, DocumentShare::chunks, 1).tiles.forward[2] >=
            document_work(*documents, samples, window, DocumentShare::whole, 1).tiles.forward[2]);
    }
}

TEST_CASE("chunks of all ranks together have every document's tiles, and those that their ends cut") {
  const auto documents = pack_documents({600, 424, 1'024, 100, 924}, 1'024, Packing::cut);
  const DocumentWork work = document_work(*documents, 1, 0, DocumentShare::chunks, 2);
  compute::DocumentTiles by_hand;
  std::int64_t keys = 0;
  for (const auto& sample : documents->samples)
    for (const auto& [one, other] : {std::pair{0, 3}, {1, 2}}) {
      std::int64_t longest = 0;
      for (const std::int64_t chunk : {one, other}) {
        std::int64_t at = 0;
        for (const std::int64_t length : sample) {
          const std::int64_t first = std::max<std::int64_t>(256 * chunk - at, 0);
          const std::int64_t end = std::min<std::int64_t>(256 * (chunk + 1) - at, length);
          at += length;
          if (end <= first) continue;
          by_hand.add(compute::causal_tiles(first, end, 0), 1.0 / 2 / 3);  // of a rank, of a sample
          longest = std::max(longest, end);
        }
      }
      keys += longest;
    }
  for (std::size_t i = 0; i < by_hand.forward.size(); ++i) CHECK(work.tiles.forward[i] == Approx(by_hand.forward[i]));
  CHECK(work.tiles.backward == Approx(by_hand.backward));
  CHECK(work.longest_keys == (keys + 5) / 6);
}

TEST_CASE("attention has the FLOPs of the pairs inside documents, with every exchange of a context") {
  const Model model = documented();
  const auto pairs = document_work(*model.documents, 2, 0, DocumentShare::whole, 1).pairs;
  const auto flops = [&](std::int64_t cp, ContextExchange exchange) {
    Strategy strategy = fused(cp, exchange);
    strategy.micro_batch = 2;
    return static_cast<double>(cp) * static_cast<double>(flops_of(attention_kernels(model, strategy)));
  };
  // Forward two GEMMs and backward five, of width 64 and 16 heads.
  const double all = 2.0 * 16 * static_cast<double>(pairs) * 7 * 64;
  CHECK(flops(1, ContextExchange::ring) == all);
  CHECK(flops(4, ContextExchange::ring) == Approx(all).epsilon(1e-5));
  CHECK(flops(4, ContextExchange::all_gather) == Approx(all).epsilon(1e-5));
  CHECK(flops(4, ContextExchange::ulysses) == all);
}

TEST_CASE("latent and windowed attention work inside documents") {
  Model model = documented();
  model.window = 512;
  const auto windowed = document_work(*model.documents, 1, 512, DocumentShare::whole, 1);
  const auto kernels = attention_kernels(model, fused(), model.layer_kind(0));
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].flops == 2 * 16 * windowed.pairs * 2 * 64);
  CHECK(kernels[0].attention.window == 512);
  model.window = 0;
  model.attention = Attention::latent;
  model.kv_rank = 128, model.rotary_dim = 32, model.head_dim = 64, model.value_dim = 48, model.kv_heads = 16;
  const auto all = document_work(*model.documents, 1, 0, DocumentShare::whole, 1);
  CHECK(attention_kernels(model, fused())[0].flops == 2 * 16 * all.pairs * (64 + 32 + 48));
  CHECK(all.pairs > windowed.pairs);
}

TEST_CASE("a model's FLOPs count squares of documents instead of samples, and memory is that without documents") {
  Model model = documented();
  Model whole = model;
  whole.documents = nullptr;
  const std::int64_t twice = twice_pairs(*model.documents);
  const double square = static_cast<double>(twice) / static_cast<double>(model.documents->samples.size());
  const double attention = 12.0 * 2 * 1'024 * (4'096.0 * 4'096 - square);  // 12 l h s^2
  CHECK(static_cast<double>(model_flops_per_sequence(whole) - model_flops_per_sequence(model)) ==
        Approx(attention).epsilon(1e-6));
  const compute::Gpu gpu = round_gpu();
  for (const std::int64_t cp : {1, 4})
    CHECK(memory::peak(model, fused(cp), gpu).total() == memory::peak(whole, fused(cp), gpu).total());
}

TEST_CASE("shorter documents leave fewer pairs") {
  double before = 0;
  for (const double mean : {100, 400, 1'600, 6'400, 100'000}) {
    const double share = drawn(8'192, mean)->pairs_share();
    CHECK(share > before);
    before = share;
  }
  CHECK(before < 1);
}

TEST_CASE("replicas that draw more samples differ less, and the slowest of more replicas has more") {
  const auto documents = drawn(8'192, 2'000);
  const DocumentSpread few = document_spread(*documents, 16, 1), many = document_spread(*documents, 16, 64);
  CHECK(few.max > many.max);
  CHECK(few.slowest > many.slowest);
  CHECK(many.slowest > 1);
  CHECK(document_spread(*documents, 64, 1).slowest > few.slowest);
  for (const DocumentSpread& each : {few, many}) {
    CHECK(each.median <= each.p95);
    CHECK(each.p95 <= each.max);
    CHECK(each.slowest <= each.max);
  }
  // The sum of n samples deviates by the deviation of one, over the root of n: 64 samples by an eighth of it.
  CHECK(many.p95 - 1 == Approx((few.p95 - 1) / 8).epsilon(0.5));
}

TEST_CASE("a table's documents fill samples whatever their lengths: again if they are few, a bounded number if long") {
  const auto few = pack_documents({16, 16}, 8'192, Packing::cut);
  REQUIRE(few != nullptr);
  CHECK(few->samples.size() == 1);
  CHECK(few->samples.front() == std::vector<std::int64_t>(512, 16));
  const auto one = pack_documents({5, std::int64_t{1} << 40}, 1'024, Packing::cut);
  REQUIRE(one != nullptr);
  CHECK(one->samples.size() == 1'024);
  CHECK(one->samples.front() == std::vector<std::int64_t>{5, 1'019});
}
