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

/// How many calls of a kind are between two places.
class Sums {
 public:
  explicit Sums(const std::vector<bool>& is) : before_(is.size() + 1) {
    for (std::size_t i = 0; i < is.size(); ++i) before_[i + 1] = before_[i] + (is[i] ? 1 : 0);
  }
  std::uint32_t between(std::uint32_t begin, std::uint32_t end) const { return before_[end] - before_[begin]; }

 private:
  std::vector<std::uint32_t> before_;
};

class Search {
 public:
  Search(const std::vector<std::uint64_t>& forms, const std::vector<bool>& work, const std::vector<bool>& communication)
      : forms_(forms),
        size_(static_cast<std::uint32_t>(forms.size())),
        hashes_(forms),
        work_(work),
        communication_(communication) {}

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
    if (work_.between(one.begin, one.end) == 0) return;
    if (!best_ || rank(one) < rank(*best_)) best_ = one;
  }

  /// What is less is found first.
  std::tuple<bool, std::int64_t, std::uint32_t, std::uint32_t> rank(const Repetition& of) const {
    return {communication_.between(of.begin, of.begin + of.period) == 0,
            -static_cast<std::int64_t>(work_.between(of.begin, of.end)), of.period, of.begin};
  }

  const std::vector<std::uint64_t>& forms_;
  std::uint32_t size_;
  Hashes hashes_;
  Sums work_, communication_;
  std::optional<Repetition> best_;
};

}  // namespace

std::optional<Repetition> find_repetition(const std::vector<std::uint64_t>& forms, const std::vector<bool>& work,
                                          const std::vector<bool>& communication) {
  return Search(forms, work, communication).find();
}

}  // namespace manyworlds::experiments::captured
