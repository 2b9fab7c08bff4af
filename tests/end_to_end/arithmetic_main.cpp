// Prints the answers of drawn configurations, without keys (those hold the build's fingerprint): one line a
// configuration. Builds by other compilers and at other optimisation levels must print the same.
#include <bit>
#include <cstdio>
#include <vector>

#include "tests/core/step/step_configurations.hpp"

int main() {
  using namespace manyworlds::tests;
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    const auto result =
        run_configuration(seed <= 60 ? draw_configuration(seed) : draw_routed(seed), step::Composition::composed);
    std::printf("%lld %lld %lld %lld", static_cast<long long>(result.step_ps), static_cast<long long>(result.link_hops),
                static_cast<long long>(result.ecn_marks), static_cast<long long>(result.pauses));
    std::vector<double> reals(result.breakdown.begin(), result.breakdown.end());
    reals.push_back(result.busiest_link_share);
    for (const double part : reals)
      std::printf(" %016llx", static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(part)));
    Time kernels = 0;  // their order is that of keys
    for (const step::SubsimulationUse& kernel : result.kernels) kernels += kernel.result_ps * kernel.times;
    std::printf(" %lld", static_cast<long long>(kernels));
    std::printf("\n");
  }
}
