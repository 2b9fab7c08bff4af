#include "experiments/captured/periods.hpp"

#include <algorithm>
#include <tuple>

namespace manyworlds::experiments::captured {
namespace {

/// Polynomial hashes of all prefixes modulo the prime 2^61 - 1, so that two stretches are compared at once.
class Hashes {
 public:
  explicit Hashes(const std::vector<std::uint64_t>& forms) : of_prefix_(forms.size() + 1), power_(forms.size() + 1) {
    power_[0] = 1;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      of_prefix_[i + 1] = reduced(product(of_prefix_[i], kBase) + forms[i] % kPrime);
      power_[i + 1] = product(power_[i], kBase);
    }
  }
  bool are_equal(std::size_t a, std::size_t b, std::size_t length) const { return of(a, length) == of(b, length); }

 private:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1, kBase = 0x1d4f3c8b9a6e5271u % kPrime;

  static std::uint64_t reduced(std::uint64_t value) { return value >= kPrime ? value - kPrime : value; }
  static std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide wide = static_cast<Wide>(a) * b;
    const std::uint64_t sum = static_cast<std::uint64_t>(wide & kPrime) + static_cast<std::uint64_t>(wide >> 61);
    return reduced(sum);
  }
  std::uint64_t of(std::size_t begin, std::size_t length) const {
    return reduced(of_prefix_[begin + length] + kPrime - product(of_prefix_[begin], power_[length]));
  }

  std::vector<std::uint64_t> of_prefix_, power_;
};

class Search {
 public:
  Search(const std::vector<std::uint64_t>& forms, const std::vector<bool>& work)
      : forms_(forms), size_(static_cast<std::uint32_t>(forms.size())), hashes_(forms), work_before_(forms.size() + 1) {
    for (std::uint32_t i = 0; i < size_; ++i) work_before_[i + 1] = work_before_[i] + (work[i] ? 1 : 0);
  }

  std::optional<Repetition> find() {
    for (const bool is_reversed : {false, true}) {
      std::vector<std::uint32_t> later;  // begins of suffixes whose next smaller one is not known, the last on top
      for (std::uint32_t i = size_; i-- > 0;) {
        while (!later.empty() && is_less(i, later.back(), is_reversed)) later.pop_back();
        // The longest Lyndon word at i ends where the next smaller suffix begins.
        try_period(i, (later.empty() ? size_ : later.back()) - i);
        later.push_back(i);
      }
    }
    return best_;
  }

 private:
  /// How far the stretches from a and b on are equal.
  std::uint32_t forward(std::uint32_t a, std::uint32_t b) const {
    std::uint32_t known = 0, most = size_ - std::max(a, b);
    if (most > 0 && forms_[a] != forms_[b]) return 0;
    while (known < most) {
      const std::uint32_t half = known + (most - known + 1) / 2;
      if (hashes_.are_equal(a, b, half))
        known = half;
      else
        most = half - 1;
    }
    return known;
  }
  /// How far the stretches that end before a and b are equal.
  std::uint32_t backward(std::uint32_t a, std::uint32_t b) const {
    std::uint32_t known = 0, most = std::min(a, b);
    if (most > 0 && forms_[a - 1] != forms_[b - 1]) return 0;
    while (known < most) {
      const std::uint32_t half = known + (most - known + 1) / 2;
      if (hashes_.are_equal(a - half, b - half, half))
        known = half;
      else
        most = half - 1;
    }
    return known;
  }

  /// Whether the suffix from a on is less than that from b on; the end is less than any form.
  bool is_less(std::uint32_t a, std::uint32_t b, bool is_reversed) const {
    const std::uint32_t equal = forward(a, b);
    if (std::max(a, b) + equal == size_) return a > b;
    return is_reversed != (forms_[a + equal] < forms_[b + equal]);
  }

  void try_period(std::uint32_t at, std::uint32_t period) {
    if (at + period >= size_) return;
    Repetition one;
    one.period = period;
    one.begin = at - backward(at, at + period);
    one.end = at + period + forward(at, at + period);
    if (one.end - one.begin < 2 * period) return;
    const std::uint32_t work = work_before_[one.end] - work_before_[one.begin];
    if (work == 0) return;
    const auto rank = [](const Repetition& of, std::uint32_t much) {
      return std::tuple(-static_cast<std::int64_t>(much), of.period, of.begin);
    };
    if (!best_ || rank(one, work) < rank(*best_, most_work_)) best_ = one, most_work_ = work;
  }

  const std::vector<std::uint64_t>& forms_;
  std::uint32_t size_;
  Hashes hashes_;
  std::vector<std::uint32_t> work_before_;
  std::optional<Repetition> best_;
  std::uint32_t most_work_ = 0;
};

}  // namespace

std::optional<Repetition> find_repetition(const std::vector<std::uint64_t>& forms, const std::vector<bool>& work) {
  return Search(forms, work).find();
}

}  // namespace manyworlds::experiments::captured
