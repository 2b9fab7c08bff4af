#include "experiments/captured/account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/escape.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::captured {
namespace {

constexpr std::size_t kMaxNames = 5;

/// Which calls of a rank are the step, without the rank.
std::string step_text(const RankRecord& record, const StepRange& step, const ReadOptions& options) {
  std::string text = fmt::format("lines {} to {}", record.calls[step.begin].line, record.calls[step.end - 1].line);
  const std::uint32_t before = step.begin, after = static_cast<std::uint32_t>(record.calls.size()) - step.end;
  if (step.periods > 0)
    text += fmt::format(", the last of {} periods of what repeats", step.periods);
  else if (options.steps.by == StepChoice::By::last_period)
    text += ", all of it: nothing in it repeats";
  text += fmt::format("; {} calls before, {} after", before, after);
  if (!step.begins_idle) text += "; the host had not waited for all before it, which is taken to be over";
  return text;
}

void tell_steps(const std::vector<RankRecord>& records, const std::vector<StepRange>& steps, const ReadOptions& options,
                std::vector<std::string>& to) {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> texts;
  std::vector<std::uint32_t> partly;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string text = step_text(records[i], steps[i], options);
    auto known = std::find_if(texts.begin(), texts.end(), [&](const auto& one) { return one.first == text; });
    if (known == texts.end()) known = texts.insert(texts.end(), {text, {}});
    known->second.push_back(static_cast<std::uint32_t>(records[i].rank));
    if (steps[i].periods > 0 && 2 * steps[i].repeated_work < steps[i].all_work)
      partly.push_back(static_cast<std::uint32_t>(records[i].rank));
  }
  for (const auto& [text, ranks] : texts)
    to.push_back(
        fmt::format("the step of rank{} {}: {}", ranks.size() > 1 ? "s" : "", programs::ranks_text(ranks), text));
  if (!partly.empty())
    to.push_back(
        fmt::format("less than half of what rank{} {} gave a device repeats so: the period may be of a layer or a "
                    "micro-batch; --steps all, profiled or FROM-TO chooses otherwise",
                    partly.size() > 1 ? "s" : "", programs::ranks_text(partly)));
}

void tell_records(const std::vector<RankRecord>& records, std::vector<std::string>& to) {
  std::int64_t failed = 0, beyond = 0;
  for (const RankRecord& record : records) {
    failed += record.failed, beyond += record.beyond;
    if (!record.stopped.empty())
      to.push_back(fmt::format("{}: the capture stopped: {}", record.file, core::line_text(record.stopped)));
    else if (!record.has_end)
      to.push_back(fmt::format("{}: has no end: the program was killed, or crashed", record.file));
  }
  if (failed > 0) to.push_back(fmt::format("{} calls returned an error, and are left out", failed));
  if (beyond > 0)
    to.push_back(
        fmt::format("{} calls reach beyond an allocation, by less than devices report: errors of the program", beyond));
}

/// Names of words with how many `what` each has, those with the most first.
std::string names_text(const std::map<std::uint32_t, std::int64_t>& counts, const Words& words, const char* what) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> by_number;
  for (const auto& [word, count] : counts) by_number.emplace_back(-count, word);
  std::sort(by_number.begin(), by_number.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(by_number.size(), kMaxNames); ++i)
    names.push_back(fmt::format("'{}' ({} {})", core::line_text(words.text(by_number[i].second)).substr(0, 80),
                                -by_number[i].first, what));
  return fmt::format("{}{}", fmt::join(names, ", "), by_number.size() > names.size() ? ", ..." : "");
}

/// Names entries of a table whose patterns may be wrong.
void tell_unused(const KernelTable& table, std::vector<std::string>& to) {
  std::vector<std::string> patterns = table.unused();
  const std::size_t count = patterns.size();
  if (count == 0) return;
  patterns.resize(std::min(count, kMaxNames));
  for (std::string& pattern : patterns) pattern = fmt::format("'{}'", core::line_text(pattern).substr(0, 80));
  to.push_back(fmt::format("{} entries of the table of kernels are of no kernel of the step: {}{}", count,
                           fmt::join(patterns, ", "), count > patterns.size() ? ", ..." : ""));
}

void tell_occupancy(const std::vector<RankRecord>& records, const Words& words, std::vector<std::string>& to) {
  std::map<std::uint32_t, std::int64_t> queries;
  for (const RankRecord& record : records)
    for (const auto& [kernel, count] : record.occupancy_queries) queries[kernel] += count;
  if (queries.empty()) return;
  to.push_back(
      fmt::format("what fits on a multiprocessor was answered as if kernels had at most 32 registers a thread and no "
                  "static shared memory, as a record has no device code; what the program chose by it may be "
                  "otherwise on a device: {}",
                  names_text(queries, words, "queries")));
}

void tell_kernels(const Tally& tally, const Words& words, programs::Imported& to) {
  if (!tally.without_time.empty()) {
    std::int64_t launches = 0;
    for (const auto& [kernel, count] : tally.without_time) launches += count;
    to.account.push_back(
        fmt::format("{} kernels of {} launches have no time, as nothing says their cost: {}; a table of "
                    "kernels (--kernels FILE) does",
                    tally.without_time.size(), launches, names_text(tally.without_time, words, "launches")));
  }
  for (const auto& [type, count] : tally.other_products) {
    const std::string& name = words.text(type);
    if (name == "fp16")
      to.programs.notes.push_back(fmt::format("{} matrix products in fp16 take what they would in bf16.", count));
    else
      to.account.push_back(
          fmt::format("{} matrix products in {} have no time, as GPUs of the catalog have no rate for it", count,
                      core::line_text(name)));
  }
}

}  // namespace

void tell(const std::vector<RankRecord>& records, const std::vector<StepRange>& steps, const Tally& tally,
          const KernelTable& table, const Words& words, const ReadOptions& options, std::int64_t differing,
          programs::Imported& to) {
  std::vector<std::string>& notes = to.programs.notes;
  notes.emplace_back(
      "Nothing was computed where it was captured: what the program decides by results, it decided by zeros.");
  notes.push_back(
      options.host_us > 0
          ? fmt::format("Each call takes {:g} us of its thread of the host.", options.host_us)
          : std::string("The host takes no time: an operation is issued when what its thread waited for is over."));
  if (tally.has_threads)
    notes.emplace_back("Threads of a process do not wait for each other, as that is in no record.");
  const auto world = static_cast<std::size_t>(records.front().world);
  if (records.size() < world)
    notes.push_back(
        fmt::format("{} ranks of {} have records; each other does what the nearest rank below it with one does, "
                    "with peers as far from its own number in a communicator.",
                    records.size(), world));
  if (differing > 0)
    notes.push_back(
        fmt::format("Ranks that differ only in sizes of kernels and copies, by up to 5 %, have the largest: "
                    "{} operations of a rank at most.",
                    differing));
  const bool has_cudnn = std::any_of(records.begin(), records.end(),
                                     [](const RankRecord& record) { return !record.library_kernels.empty(); });
  if (has_cudnn) notes.emplace_back("cuDNN asked for no workspace where it was captured, as it may on a device.");
  tell_kernels(tally, words, to);
  tell_unused(table, to.account);
  std::vector<std::string>& account = to.account;
  tell_steps(records, steps, options, account);
  tell_records(records, account);
  tell_occupancy(records, words, account);
  if (tally.alone > 0)
    account.push_back(fmt::format("{} collectives are left out, as their communicators have one rank", tally.alone));
  if (tally.with_themselves > 0)
    account.push_back(fmt::format("{} transfers of ranks with themselves are copies", tally.with_themselves));
  if (tally.of_host > 0)
    account.push_back(
        fmt::format("{} copies within the host and functions of the host on streams take no time", tally.of_host));
}

}  // namespace manyworlds::experiments::captured
