#include "experiments/profiler_traces/account.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/escape.hpp"

namespace manyworlds::experiments::profiler {
namespace {

std::string rank_of(const std::vector<RankTrace>& traces, std::size_t trace) {
  return fmt::format("rank {}", traces[trace].rank.value_or(static_cast<std::int64_t>(trace)));
}

void tell_ranks(const std::vector<RankTrace>& traces, const std::vector<RankAccount>& ranks, bool are_all,
                programs::Imported& imported) {
  std::vector<std::string>& to = imported.account;
  double late_us = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const RankTrace& trace = traces[i];
    const std::string gpu =
        trace.device_name.empty() ? "a GPU that the trace does not name" : core::line_text(trace.device_name);
    to.push_back(fmt::format("{} ({}): {} operations of {} on {} streams, {} launches by {} threads, {:.3f} ms",
                             rank_of(traces, i), trace.file, ranks[i].operations, gpu, trace.streams.size(),
                             ranks[i].launches, ranks[i].threads, ranks[i].span_us * 1e-3));
    if (are_all && static_cast<std::int64_t>(i) != trace.rank.value_or(static_cast<std::int64_t>(i)))
      to.push_back(
          fmt::format("{} is rank {} of the program, as other ranks' traces are not there", rank_of(traces, i), i));
    if (ranks[i].devices > 1)
      to.push_back(
          fmt::format("{}: its operations are of {} GPUs, whose streams are one rank's here, with the times that "
                      "they took",
                      rank_of(traces, i), ranks[i].devices));
    if (ranks[i].unlaunched > 0)
      to.push_back(fmt::format("{}: the launch of {} operations is not in the trace: they start when they did",
                               rank_of(traces, i), ranks[i].unlaunched));
    if (trace.strange_times > 0)
      to.push_back(fmt::format("{}: {} events have times that make no sense, and were left out{}", rank_of(traces, i),
                               trace.strange_times,
                               trace.strange.empty() ? "" : fmt::format("; the first is {}", trace.strange)));
    if (trace.mended_values > 0)
      to.push_back(fmt::format("{}: {} values are none that JSON has (NaN, inf, N/A): they are taken as not known",
                               rank_of(traces, i), trace.mended_values));
    if (trace.mended_characters > 0)
      to.push_back(fmt::format("{}: {} characters of texts are no UTF-8 or not escaped: others stand in their place",
                               rank_of(traces, i), trace.mended_characters));
    if (ranks[i].overlapping > 0)
      to.push_back(
          fmt::format("{}: {} operations started before one before them on their stream had ended, as in "
                      "graphs and with programmatic launches: each keeps its stream until the next starts",
                      rank_of(traces, i), ranks[i].overlapping));
    if (ranks[i].late > 0)
      to.push_back(
          fmt::format("{}: {} operations started later than what is known of them explains, {:.3f} ms in all: "
                      "these delays stay as they were",
                      rank_of(traces, i), ranks[i].late, ranks[i].late_us * 1e-3));
    late_us += ranks[i].late_us;
    if (ranks[i].gaps_us > 0)
      to.push_back(
          fmt::format("{}: {:.3f} ms between operations that had been launched are counted with the ones "
                      "before them",
                      rank_of(traces, i), ranks[i].gaps_us * 1e-3));
  }
  if (late_us > 0)
    imported.programs.notes.push_back(
        fmt::format("{:.3f} ms of delays, summed over the ranks that were traced, have no reason in the trace and stay "
                    "as they were, whatever else is changed",
                    late_us * 1e-3));
}

void tell_dependencies(const std::vector<RankAccount>& ranks, const ProfilerTerms& terms, programs::Imported& to) {
  RankAccount all;
  for (const RankAccount& rank : ranks) {
    for (const auto& [sum, one] : {std::pair(&all.between_streams, &rank.between_streams), {&all.host, &rank.host}}) {
      sum->exact += one->exact;
      sum->inferred += one->inferred;
      sum->contradicted += one->contradicted;
    }
    all.unresolved += rank.unresolved, all.of_library += rank.of_library, all.handovers += rank.handovers,
        all.cycles += rank.cycles;
  }
  to.dependencies.exact = all.between_streams.exact + all.host.exact;
  to.dependencies.inferred = all.between_streams.inferred + all.host.inferred + all.handovers;
  to.dependencies.contradicted = all.between_streams.contradicted + all.host.contradicted + all.cycles;
  to.account.push_back(fmt::format(
      "between streams: {} dependencies exact, {} inferred, {} contradicted by times and dropped, {} waits unresolved",
      all.between_streams.exact, all.between_streams.inferred, all.between_streams.contradicted + all.cycles,
      all.unresolved));
  to.account.push_back(fmt::format("of the host on operations: {} exact, {} inferred, {} contradicted and dropped",
                                   all.host.exact, all.host.inferred, all.host.contradicted));
  if (all.of_library > 0)
    to.account.push_back(
        fmt::format("{} waits behind launches of collectives are taken for NCCL's own, of no other "
                    "stream",
                    all.of_library));
  if (all.handovers > 0)
    to.account.push_back(
        fmt::format("the thread of the backward pass and that which calls it take turns {} times: "
                    "inferred from their calls",
                    all.handovers));
  if (all.between_streams.inferred + all.between_streams.contradicted + all.unresolved > 0)
    to.account.push_back(
        fmt::format("waits without a handle were inferred; profile with {} to have them exact", terms.exact_waits));
}

void tell_clocks(const std::vector<RankTrace>& traces, const MatchedCollectives& collectives,
                 std::vector<std::string>& to) {
  for (std::size_t i = 1; i < traces.size(); ++i) {
    const RankClock& clock = collectives.clocks[i];
    if (clock.compared == 0)
      to.push_back(
          fmt::format("the clock of {} could not be compared, as it has no collective with known ranks: it "
                      "begins with its first event",
                      rank_of(traces, i)));
    else
      to.push_back(
          fmt::format("the clock of {} is {:.1f} us ahead of that of {}, by {} collectives, half of which end "
                      "within {:.1f} us of it",
                      rank_of(traces, i), static_cast<double>(clock.ahead) * 1e-3, rank_of(traces, 0), clock.compared,
                      static_cast<double>(clock.spread) * 1e-3));
  }
}

void tell_collectives(const MatchedCollectives& all, Collectives how, programs::Imported& to) {
  if (all.kernels == 0) return;
  std::int64_t matched = 0;
  for (const auto& of_rank : all.ops) matched += std::ssize(of_rank);
  to.account.push_back(fmt::format("{} kernels of NCCL or RCCL: {} are collectives of {} groups", all.kernels, matched,
                                   all.groups.size()));
  const auto kept = [&](std::int64_t count, const char* why) {
    if (count > 0)
      to.account.push_back(fmt::format(
          "{} kernels of NCCL or RCCL {}: they are kernels of the time they took, waiting included", count, why));
  };
  kept(all.unnamed, "do not say what, how much or among which ranks");
  kept(all.missing, to.programs.ranks.program_of_rank.size() > all.ops.size()
                        ? "are of groups that are no part of a grid of all ranks"
                        : "are of groups with ranks whose traces are not there");
  kept(all.unmatched, "are not in the traces of all their ranks in the same order");
  if (matched == 0) return;
  const auto each = static_cast<double>(matched);
  to.account.push_back(
      fmt::format("matched collectives take {:.1f} us on average, waiting for other ranks included, "
                  "and {:.1f} us on the rank where they are shortest",
                  all.matched_ns * 1e-3 / each, all.shortest_ns * 1e-3 / each));
  if (all.averaged > 0)
    to.programs.notes.push_back(fmt::format(
        "{} all-to-alls whose bytes differ by rank are even ones of the mean of their bytes", all.averaged));
  if (how == Collectives::as_recorded)
    to.programs.notes.emplace_back("Collectives are kernels of the times that they took, waiting included.");
  if (how == Collectives::without_waiting)
    to.programs.notes.emplace_back("Collectives are kernels of the shortest time over their ranks.");
}

void tell_shapes(programs::Imported& to) {
  std::size_t kernels = 0, with_shape = 0;
  double us = 0, us_with_shape = 0;
  for (const programs::RankProgram& program : to.programs.programs)
    for (const programs::StreamOp& op : program.ops) {
      const auto* kernel = std::get_if<programs::KernelWork>(&op.work);
      if (kernel == nullptr || !kernel->measured_us) continue;
      ++kernels, us += *kernel->measured_us;
      if (kernel->shape.is_known()) ++with_shape, us_with_shape += *kernel->measured_us;
    }
  if (with_shape > 0)
    to.account.push_back(fmt::format("shapes of {} of {} kernels, {:.1f} % of their time, follow from their operators",
                                     with_shape, kernels, us > 0 ? 100 * us_with_shape / us : 100));
}

}  // namespace

void tell(const std::vector<RankTrace>& traces, const std::vector<RankAccount>& ranks,
          const MatchedCollectives& collectives, Collectives how, const ProfilerTerms& terms, programs::Imported& to) {
  tell_ranks(traces, ranks, to.programs.ranks.program_of_rank.size() == traces.size(), to);
  tell_clocks(traces, collectives, to.account);
  tell_dependencies(ranks, terms, to);
  tell_collectives(collectives, how, to);
  tell_shapes(to);
  for (const RankAccount& rank : ranks) to.recorded_us = std::max(to.recorded_us, rank.span_us);
}

}  // namespace manyworlds::experiments::profiler
