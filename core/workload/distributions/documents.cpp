// Draws lengths of documents, and packs them.
#include "core/workload/distributions/documents.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/workload/distributions/elementary.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kMaxSamples = 1'024, kMinSamples = 16, kMaxDocuments = 16'384, kMinDocuments = 64;
constexpr std::int64_t kLongest = 1 << 24;  // as long as a sample can be
constexpr std::int64_t kSpreadSteps = 64;
constexpr std::uint64_t kOrder = 1, kSpread = 2;  // subjects of decisions

double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (const double each : coefficients) sum = sum * x + each;
  return sum;
}

void shuffle(std::vector<std::int64_t>& values, std::int64_t seed) {
  for (std::size_t i = values.size(); i-- > 1;)
    std::swap(values[i], values[decision_hash(static_cast<std::uint64_t>(seed), kOrder, i) % (i + 1)]);
}

/// Returns at most kMaxSamples samples. Documents that fill none follow each other again.
std::vector<std::vector<std::int64_t>> cut_samples(const std::vector<std::int64_t>& lengths, std::int64_t sequence) {
  MANYWORLDS_CHECK(!lengths.empty(), "no documents to pack");
  std::vector<std::vector<std::int64_t>> samples(1);
  std::int64_t free = sequence;
  const auto is_open = [&] { return std::ssize(samples) <= kMaxSamples; };
  do {
    for (std::size_t i = 0; i < lengths.size() && is_open(); ++i)
      for (std::int64_t rest = lengths[i]; rest > 0 && is_open();) {
        const std::int64_t piece = std::min(rest, free);
        samples.back().push_back(piece);
        rest -= piece, free -= piece;
        if (free > 0) continue;
        samples.emplace_back();
        free = sequence;
      }
  } while (samples.size() == 1);
  samples.pop_back();  // is not full
  return samples;
}

/// The free tokens of samples as a tree of maxima, which finds the first one with room.
class FirstFit {
 public:
  FirstFit(std::size_t most, std::int64_t sequence) {
    while (leaves_ < most) leaves_ *= 2;
    free_.assign(2 * leaves_, sequence);
  }
  std::size_t place(std::int64_t length) {
    std::size_t at = 1;
    while (at < leaves_) at = 2 * at + (free_[2 * at] >= length ? 0 : 1);
    free_[at] -= length;
    for (std::size_t node = at / 2; node > 0; node /= 2) free_[node] = std::max(free_[2 * node], free_[2 * node + 1]);
    return at - leaves_;
  }
  std::int64_t free(std::size_t sample) const { return free_[leaves_ + sample]; }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> free_;
};

}  // namespace

double Documents::pairs_share() const {
  double sum = 0;
  for (const auto& [length, times] : lengths)
    sum += static_cast<double>(length) * static_cast<double>(length) * static_cast<double>(times);
  const auto tokens = static_cast<double>(sequence);
  return sum / (tokens * tokens * static_cast<double>(samples.size()));
}

double normal_quantile(double share) {
  constexpr std::array<double, 6> kNear{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                        1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array<double, 6> kUnderNear{-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                             6.680131188771972e+01,  -1.328068155288572e+01, 1};
  constexpr std::array<double, 6> kTail{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                        -2.549732537343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array<double, 5> kUnderTail{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                             3.754408661907416e+00, 1};
  constexpr double kTailShare = 0.02425;
  MANYWORLDS_CHECK(share > 0 && share < 1, "the quantile of a share of {}", share);
  const double tail = std::min(share, 1 - share);
  if (tail < kTailShare) {
    const double q = std::sqrt(2 * logarithm(1 / tail));
    const double below = polynomial(kTail, q) / polynomial(kUnderTail, q);
    return share < 0.5 ? below : -below;
  }
  const double q = share - 0.5, r = q * q;
  return polynomial(kNear, r) * q / polynomial(kUnderNear, r);
}

std::int64_t documents_to_draw(double mean_length, std::int64_t sequence) {
  const double by_sample = static_cast<double>(sequence) / mean_length;
  const std::int64_t samples = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(kMaxDocuments) / by_sample), kMinSamples, kMaxSamples);
  return std::max(kMinDocuments, static_cast<std::int64_t>(by_sample * static_cast<double>(samples)) + 1);
}

std::vector<std::int64_t> lognormal_lengths(double mean, double sigma, std::int64_t seed, std::int64_t count) {
  const double median = mean * exponential(-sigma * sigma / 2);
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double z = normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(count));
    const double length = std::min(median * exponential(sigma * z), static_cast<double>(kLongest));
    lengths.push_back(std::max<std::int64_t>(1, round_half_up(length)));
  }
  shuffle(lengths, seed);
  return lengths;
}

double mean_length(const std::vector<std::pair<std::int64_t, std::int64_t>>& table) {
  double tokens = 0, documents = 0;
  for (const auto& [length, times] : table) {
    tokens += static_cast<double>(length) * static_cast<double>(times);
    documents += static_cast<double>(times);
  }
  return tokens / documents;
}

std::vector<std::int64_t> tabled_lengths(const std::vector<std::pair<std::int64_t, std::int64_t>>& table,
                                         std::int64_t seed, std::int64_t count) {
  Int128 all = 0, before = 0;
  for (const auto& [length, times] : table) all += times;
  std::vector<std::int64_t> lengths;
  for (const auto& [length, times] : table) {
    before += times;
    // The i-th document is that at (2 i + 1) / (2 count) of all.
    while (std::ssize(lengths) < count && (2 * Int128{std::ssize(lengths)} + 1) * all < 2 * Int128{count} * before)
      lengths.push_back(length);
  }
  shuffle(lengths, seed);
  return lengths;
}

std::shared_ptr<const Documents> pack_documents(const std::vector<std::int64_t>& lengths, std::int64_t sequence,
                                                Packing packing) {
  auto documents = std::make_shared<Documents>();
  documents->sequence = sequence;
  if (packing == Packing::cut) {
    documents->samples = cut_samples(lengths, sequence);
  } else {
    FirstFit open(lengths.size(), sequence);
    for (const std::int64_t each : lengths) {
      const std::int64_t length = std::min(each, sequence);
      const std::size_t sample = open.place(length);
      if (sample >= documents->samples.size()) documents->samples.resize(sample + 1);
      documents->samples[sample].push_back(length);
    }
    for (std::size_t i = 0; i < documents->samples.size(); ++i)
      if (open.free(i) > 0) documents->padding += open.free(i), documents->samples[i].push_back(open.free(i));
  }
  MANYWORLDS_CHECK(!documents->samples.empty(), "{} documents fill no sample of {} tokens", lengths.size(), sequence);
  std::map<std::int64_t, std::int64_t> times;
  sharing::KeyWriter writer("documents");
  for (const auto& sample : documents->samples) {
    writer.integer(static_cast<std::int64_t>(sample.size()));
    for (const std::int64_t each : sample) ++times[each], writer.integer(each);
  }
  if (times.size() == 1 && times.begin()->first == sequence) return nullptr;
  documents->lengths.assign(times.begin(), times.end());
  documents->key = writer.finish();
  return documents;
}

DocumentSpread document_spread(const Documents& documents, std::int64_t replicas, std::int64_t samples) {
  std::vector<double> squares;
  double mean = 0;
  for (const auto& sample : documents.samples) {
    squares.push_back(0);
    for (const std::int64_t each : sample) squares.back() += static_cast<double>(each) * static_cast<double>(each);
    mean += squares.back();
  }
  mean *= static_cast<double>(samples) / static_cast<double>(squares.size());
  DocumentSpread spread{0, 0, 0, 0};
  std::vector<double> all;
  std::uint64_t drawn = 0;
  for (std::int64_t step = 0; step < kSpreadSteps; ++step) {
    double most = 0;
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      double sum = 0;
      for (std::int64_t i = 0; i < samples; ++i) sum += squares[decision_hash(0, kSpread, drawn++) % squares.size()];
      all.push_back(sum / mean);
      most = std::max(most, sum / mean);
    }
    spread.slowest += most / static_cast<double>(kSpreadSteps);
  }
  std::sort(all.begin(), all.end());
  spread.median = all[(all.size() - 1) / 2];
  spread.p95 = all[(all.size() - 1) * 95 / 100];
  spread.max = all.back();
  return spread;
}

}  // namespace manyworlds::core::workload
