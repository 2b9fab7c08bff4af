#include "experiments/captured/read_captured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/base/error.hpp"
#include "experiments/captured/account.hpp"
#include "experiments/captured/step_program.hpp"
#include "experiments/graphs/graph_programs.hpp"
#include "experiments/graphs/group_dimensions.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/records/rank_groups.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::captured {
namespace {

namespace fs = std::filesystem;
using core::InputError;

constexpr std::size_t kMaxRecordBytes = std::size_t{2} << 30;

bool is_record_name(const std::string& name) {
  if (!name.starts_with("rank")) return false;
  const std::size_t digits = name.find_first_not_of("0123456789", 4);
  return digits != 4 && digits != std::string::npos &&
         (name.substr(digits) == ".jsonl" || name.substr(digits) == ".jsonl.gz");
}

std::vector<std::string> records_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (is_record_name(entry.path().filename().string())) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// Sorts records by rank, and checks that they are of one job.
void check_ranks(std::vector<RankRecord>& records, const std::string& name) {
  if (records.empty()) throw InputError("has no record", name);
  std::stable_sort(records.begin(), records.end(),
                   [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].rank == records[i - 1].rank)
      throw InputError(
          fmt::format("is of rank {}, as is {}: give one record per rank", records[i].rank, records[i - 1].file),
          records[i].file, 1);
    if (records[i].world != records[0].world)
      throw InputError(fmt::format("is of a world of {} ranks, {} of one of {}: give the records of one job",
                                   records[i].world, records[0].file, records[0].world),
                       records[i].file, 1);
  }
}

/// Returns, by rank of the job, the record that it is or that stands for it.
std::vector<std::size_t> records_of_ranks(const std::vector<RankRecord>& records, bool alike, const std::string& name) {
  const auto world = static_cast<std::uint32_t>(records.front().world);
  std::vector<std::size_t> record_of_rank(world);
  std::vector<std::uint32_t> lacking;
  std::size_t next = 0;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const bool is_there = next < records.size() && static_cast<std::uint32_t>(records[next].rank) == rank;
    if (is_there)
      ++next;
    else
      lacking.push_back(rank);
    record_of_rank[rank] = next == 0 ? 0 : next - 1;
  }
  if (!lacking.empty() && !alike)
    throw InputError(
        fmt::format(
            "{} {} of {} {} no record: capture {}, or say by --alike that each does what the nearest rank below it "
            "with a record does",
            lacking.size() == 1 ? "rank" : "ranks", programs::ranks_text(lacking), world,
            lacking.size() == 1 ? "has" : "have", lacking.size() == 1 ? "it" : "them"),
        name);
  return record_of_rank;
}

/// Programs of records, those that are alike as one.
class DistinctPrograms {
 public:
  void add(StepProgram program) {
    for (std::size_t i = 0; i < originals_.size(); ++i) {
      if (!are_alike(originals_[i], program)) continue;
      differing_ = std::max(differing_, take_larger(largest_[i], program));
      number_of_record_.push_back(i);
      return communications_.push_back(std::move(program.communications));
    }
    number_of_record_.push_back(originals_.size());
    communications_.push_back(program.communications);
    largest_.push_back(program);
    originals_.push_back(std::move(program));
  }
  std::size_t number_of(std::size_t record) const { return number_of_record_[record]; }
  const programs::RankProgram& program_of(std::size_t record) const {
    return largest_[number_of_record_[record]].program;
  }
  const auto& communications_of(std::size_t record) const { return communications_[record]; }
  /// The most operations of a rank whose sizes are not those of another that has the same program.
  std::int64_t differing() const { return differing_; }

 private:
  std::vector<StepProgram> originals_, largest_;
  std::vector<std::size_t> number_of_record_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> communications_;  // by record
  std::int64_t differing_ = 0;
};

/// Gives every rank of the job its program.
class JobBuilder {
 public:
  JobBuilder(const std::vector<RankRecord>& records, const Words& words, const DistinctPrograms& distinct,
             const std::vector<std::size_t>& record_of_rank, const RankGroups& groups)
      : records_(records),
        words_(words),
        distinct_(distinct),
        record_of_rank_(record_of_rank),
        groups_(groups),
        dimensions_(graphs::dimensions_of(groups.groups())),
        programs_(static_cast<std::uint32_t>(record_of_rank.size()), groups.groups(), {}) {}

  programs::Imported build(const std::string& name) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> first;  // rank by program and dimensions of its calls
    for (std::uint32_t rank = 0; rank < record_of_rank_.size(); ++rank) {
      const auto alike = what_it_does(rank);
      const auto [known, is_new] = alike.empty() ? std::pair(first.end(), true) : first.try_emplace(alike, rank);
      if (is_new)
        add(rank);
      else
        programs_.add_same(rank, known->second);
    }
    return programs_.finish(name);
  }

 private:
  /// What tells a rank's program from others: its record's, and the dimensions of its collectives; nothing if it has
  /// transfers, which also depend on the rank.
  std::vector<std::uint32_t> what_it_does(std::uint32_t rank) const {
    const std::size_t record = record_of_rank_[rank];
    std::vector<std::uint32_t> of{static_cast<std::uint32_t>(distinct_.number_of(record)),
                                  static_cast<std::uint32_t>(record)};
    std::vector<std::int32_t> seen;
    for (const auto& [op, number] : distinct_.communications_of(record)) {
      const Call& call = records_[record].calls[number];
      if (call.kind != CallKind::collective) return {};
      if (std::find(seen.begin(), seen.end(), call.number) != seen.end()) continue;
      seen.push_back(call.number);
      of.push_back(dimensions_[groups_.group_of(rank, static_cast<std::size_t>(call.number))]);
    }
    return of;
  }

  void add(std::uint32_t rank) {
    const std::size_t number = record_of_rank_[rank];
    const RankRecord& record = records_[number];
    programs::RankProgram program = distinct_.program_of(number);
    for (programs::StreamOp& op : program.ops) op.name = name_of(op.name);
    std::vector<graphs::CommunicatingOp> calls;
    for (const auto& [op, at] : distinct_.communications_of(number)) {
      const Call& call = record.calls[at];
      const Communication& what = record.communications[call.detail];
      const auto communicator = static_cast<std::size_t>(call.number);
      const std::uint32_t group = groups_.group_of(rank, communicator);
      const std::int32_t in_rank = record.communicators[communicator].in_rank;
      if (call.kind == CallKind::collective)
        calls.push_back(
            {op, graphs::GroupCall{group, what.kind, call.bytes, static_cast<std::uint32_t>(std::max(what.peer, 0))}});
      else
        calls.push_back({op, graphs::Transfer{groups_.peer_of(rank, communicator, in_rank, what.peer),
                                              call.kind == CallKind::receive, call.bytes, group}});
    }
    programs_.add(rank, std::move(program), calls, record.file);
  }

  std::uint32_t name_of(std::uint32_t word) {
    if (names_.size() <= word) names_.resize(words_.size(), UINT32_MAX);
    if (names_[word] == UINT32_MAX) names_[word] = programs_.number_of(words_.text(word));
    return names_[word];
  }

  const std::vector<RankRecord>& records_;
  const Words& words_;
  const DistinctPrograms& distinct_;
  const std::vector<std::size_t>& record_of_rank_;
  const RankGroups& groups_;
  std::vector<std::uint32_t> dimensions_;  // by group
  graphs::GraphPrograms programs_;
  std::vector<std::uint32_t> names_;  // by word
};

}  // namespace

bool is_captured(const std::string& path, std::string_view head) {
  std::error_code ignored;
  return is_record(head) || (fs::is_directory(path, ignored) && !records_in(path).empty());
}

programs::Imported import_records(std::vector<RankRecord> records, const Words& words, const KernelTable& table,
                                  const ReadOptions& options, std::string_view groups, const std::string& name) {
  check_ranks(records, name);
  const std::vector<std::size_t> record_of_rank = records_of_ranks(records, options.alike, name);
  const std::vector<JoinedCommunicator> joined = join_communicators(records);
  check_calls(records, joined, words);
  const std::vector<StepRange> steps = find_steps(records, joined, options.steps);
  Tally tally;
  DistinctPrograms distinct;
  std::vector<std::vector<bool>> used;
  for (std::size_t i = 0; i < records.size(); ++i) {
    StepProgram program = step_program(records[i], steps[i], table, words, options.host_us, tally);
    if (program.program.ops.empty()) throw InputError("gives a device no work in its step", records[i].file);
    auto& of = used.emplace_back(records[i].communicators.size());
    for (const auto& [op, call] : program.communications)
      of[static_cast<std::size_t>(records[i].calls[call].number)] = true;
    distinct.add(std::move(program));
  }
  const RankGroups rank_groups(records, joined, record_of_rank, used, groups, options.groups_path);
  programs::Imported result = JobBuilder(records, words, distinct, record_of_rank, rank_groups).build(name);
  result.programs.name = fs::path(name).filename().string();
  result.programs.origin = "records of a captured program";
  result.programs.gpu = table.gpu();
  result.programs.slowed = core::workload::SlowedKernels::calibrated;
  tell(records, steps, tally, table, words, options, distinct.differing(), result);
  return result;
}

programs::Imported read_captured(const std::vector<std::string>& paths, const ReadOptions& options) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (fs::is_directory(path)) {
      const std::vector<std::string> in = records_in(path);
      if (in.empty()) throw InputError("is a folder without records, which are called rank0.jsonl and on", path);
      files.insert(files.end(), in.begin(), in.end());
    } else {
      files.push_back(path);
    }
  }
  const KernelTable table = options.kernels_path.empty()
                                ? KernelTable()
                                : KernelTable(import::read_text(options.kernels_path), options.kernels_path);
  const std::string groups = options.groups_path.empty() ? std::string() : import::read_text(options.groups_path);
  Words words;
  std::vector<RankRecord> records;
  for (const std::string& file : files)
    records.push_back(parse_record(import::read_table_text(file, kMaxRecordBytes), file, words));
  std::string name = paths.front();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return import_records(std::move(records), words, table, options, groups, name);
}

}  // namespace manyworlds::experiments::captured
