#include "farm/allocation/divide.hpp"

#include <optional>
#include <queue>

#include "core/base/error.hpp"

namespace manyworlds::farm::allocation {
namespace {

/// A larger share for a job. Those that are served first compare as the largest.
struct Claim {
  double urgency = 0;
  std::size_t job = 0;
  std::int64_t to = 0;  // GPUs

  bool operator<(const Claim& other) const {
    return urgency != other.urgency ? urgency < other.urgency : job > other.job;
  }
};

/// Gives every job in turn the least that it can run on, if that is there.
std::vector<std::int64_t> least_shares(std::span<const PresentJob> jobs, std::int64_t& left) {
  std::vector<std::int64_t> shares(jobs.size(), 0);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::int64_t least = jobs[i].job->curve.front().gpus;
    if (least > left) continue;
    shares[i] = least, left -= least;
  }
  return shares;
}

/// Serves the most urgent claim again and again. `next(job, share, left)` returns the claim of a job that has `share`
/// GPUs while `left` are left, or nothing; fewer that are left never make it more urgent.
template <class Next>
std::vector<std::int64_t> serve_claims(std::span<const PresentJob> jobs, std::int64_t left, Next&& next) {
  std::vector<std::int64_t> shares = least_shares(jobs, left);
  std::priority_queue<Claim> claims;
  const auto ask = [&](std::size_t job) {
    const std::optional<Claim> claim = shares[job] > 0 ? next(job, shares[job], left) : std::nullopt;
    if (claim) claims.push(*claim);
  };
  for (std::size_t job = 0; job < jobs.size(); ++job) ask(job);
  while (!claims.empty()) {
    const Claim claim = claims.top();
    claims.pop();
    if (const std::int64_t more = claim.to - shares[claim.job]; more <= left)
      shares[claim.job] = claim.to, left -= more;
    ask(claim.job);
  }
  return shares;
}

double completion_s(const PresentJob& job, std::int64_t speed) {
  return static_cast<double>(job.work) / static_cast<double>(speed) / static_cast<double>(kSecond_ns);
}

/// Returns the claim by which the completion time lessens most per GPU, of equal ones that for the fewest GPUs.
std::optional<Claim> best_gain(const PresentJob& job, std::size_t index, std::int64_t share, std::int64_t left) {
  const double now_s = completion_s(job, speed_on(*job.job, share));
  Claim best{.job = index};
  for (const SpeedPoint& point : job.job->curve) {
    if (point.gpus <= share || point.gpus - share > left) continue;
    const double gain = (now_s - completion_s(job, point.speed)) / static_cast<double>(point.gpus - share);
    if (gain > best.urgency) best.urgency = gain, best.to = point.gpus;
  }
  return best.urgency > 0 ? std::optional(best) : std::nullopt;
}

/// Returns the claim of a job for the next number of its curve: the more urgent, the fewer GPUs it has.
std::optional<Claim> fair_claim(const PresentJob& job, std::size_t index, std::int64_t share, std::int64_t left,
                                std::int64_t gpus) {
  const std::int64_t enough = fastest_point(*job.job, gpus).gpus;
  for (const SpeedPoint& point : job.job->curve)
    if (point.gpus > share)
      return point.gpus <= enough && point.gpus - share <= left
                 ? std::optional(Claim{-static_cast<double>(share), index, point.gpus})
                 : std::nullopt;
  return std::nullopt;
}

std::vector<std::int64_t> in_order(std::span<const PresentJob> jobs, std::int64_t gpus) {
  std::vector<std::int64_t> shares;
  std::int64_t left = gpus;
  for (const PresentJob& present : jobs) {
    const Job& job = *present.job;
    const std::int64_t wanted = job.request > 0 ? job.request : fastest_point(job, gpus).gpus;
    if (wanted > left) break;
    shares.push_back(wanted), left -= wanted;
  }
  shares.resize(jobs.size(), 0);
  return shares;
}

}  // namespace

std::vector<std::int64_t> divide(Policy policy, std::span<const PresentJob> jobs, std::int64_t gpus) {
  switch (policy) {
    case Policy::fifo:
      return in_order(jobs, gpus);
    case Policy::drf:
      return serve_claims(jobs, gpus, [&](std::size_t job, std::int64_t share, std::int64_t left) {
        return fair_claim(jobs[job], job, share, left, gpus);
      });
    case Policy::marginal_gain:
      return serve_claims(jobs, gpus, [&](std::size_t job, std::int64_t share, std::int64_t left) {
        return best_gain(jobs[job], job, share, left);
      });
  }
  return {};
}

}  // namespace manyworlds::farm::allocation
