#include "io/report/proof_blocks.hpp"

#include <fmt/format.h>

#include "io/results/number_format.hpp"

namespace manyworlds::io {

std::vector<Block> proof_of_best(const Results& results) {
  const auto number = [&](const char* name) { return provenance_number(results, name); };
  if (number("best_analytic") == 0) return {};  // nobody asked, or it has not ended
  const auto counts = results.experiments.counts_of("status");
  const auto count_of = [&](const char* status) {
    const auto found = counts.find(status);
    return found == counts.end() ? std::size_t{0} : found->second;
  };
  TableBlock rungs{{{"rung", "looked at", "what it is"}}, {true, false, true}};
  const auto add = [&](const char* rung, double count, const char* what) {
    rungs.lines.push_back({rung, group_digits(count), what});
  };
  if (number("space_points") > 0) {
    add("points of the axes", number("space_points"), "every combination, valid or not");
    add("bounds of points and of groups of points", number("space_bounds"),
        "sums over a micro-batch; of a group, whatever ZeRO, recomputation and transport its points have");
  }
  add("experiments that fit", static_cast<double>(count_of("ran") + count_of("bounded") + count_of("failed")),
      "sums over a micro-batch, passes in their order");
  add("analytic steps", number("best_analytic"), "transfers without contention");
  add("simulated", static_cast<double>(count_of("ran")), "the steps that are ranked");
  const std::string proven =
      number("best_gap") > 0 ? fmt::format("Nothing else is better than the last of the best {} by more than {:.2g} %",
                                           number("best"), 100 * number("best_gap"))
                             : fmt::format("Nothing else is better than the last of the best {}", number("best"));
  return {
      Heading{"Proof of the best", "proof"}, std::move(rungs),
      Paragraph{proven + (count_of("failed") > 0 ? ", but for experiments that failed" : "") +
                ": every rung is a lower bound of the step time, and what it leaves behind is behind the results of "
                "the last."}};
}

}  // namespace manyworlds::io
