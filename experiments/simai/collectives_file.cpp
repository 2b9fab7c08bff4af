#include "experiments/simai/collectives_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/programs/check_communication.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/simai/collectives_table.hpp"
#include "experiments/simai/step_builder.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::simai {
namespace {

using core::InputError;
using core::collective::Kind;
using core::workload::StepPart;
using programs::Communication;

/// The sizes of groups that rows say, those of set-up among them, each with its first line; and which groups are used.
class Sizes {
 public:
  Sizes(const std::vector<Section>& sections, const std::string& name) : name_(name) {
    for (const Section& section : sections) {
      for (const Row& row : section.sizes) add(row);
      for (const Row& row : section.rows) {
        if (row.group && row.group_size > 0) add(row);
        if (row.group) used_.try_emplace(*row.group, row.line);
      }
    }
  }

  std::uint32_t of(GroupKind kind) const {
    const auto known = sizes_.find(kind);
    return known == sizes_.end() ? 0 : known->second.first;
  }

  /// Returns the line of the first row of any of these groups; nothing: there is none.
  std::optional<int> first_use(std::initializer_list<GroupKind> kinds) const {
    std::optional<int> first;
    for (const GroupKind kind : kinds)
      if (const auto used = used_.find(kind); used != used_.end() && (!first || used->second < *first))
        first = used->second;
    return first;
  }

  /// Throws InputError unless groups have the sizes that rows say.
  void check(const RankOrder& order) const {
    for (const auto& [kind, said] : sizes_)
      if (order.members(kind) != said.first)
        throw InputError(fmt::format("has a group of {} ranks, where tp {}, ep {}, pp {} on {} GPUs have {}",
                                     said.first, order.tp, order.ep, order.pp, order.gpus, order.members(kind)),
                         name_, said.second);
  }

 private:
  void add(const Row& row) {
    const auto [known, is_new] = sizes_.try_emplace(*row.group, row.group_size, row.line);
    if (!is_new && known->second.first != row.group_size)
      throw InputError(fmt::format("has a group of {} ranks, and line {} one of {} of the same kind", row.group_size,
                                   known->second.second, known->second.first),
                       name_, row.line);
  }

  const std::string& name_;
  std::map<GroupKind, std::pair<std::uint32_t, int>> sizes_;
  std::map<GroupKind, int> used_;
};

/// The sizes of tensor, expert and pipeline parallelism: what rows say or imply, and what is said beside the table.
/// Without either there are none, unless something of theirs is to be done.
void read_parallelism(RankOrder& order, const Sizes& sizes, std::uint32_t sections, const RunOptions& options,
                      const std::string& name) {
  const auto chosen = [&](const char* key, std::uint32_t said, std::uint32_t given, std::optional<int> used) {
    if (said > 0 && given > 0 && said != given)
      throw InputError(fmt::format("has {} {}, and --group-sizes {}", key, said, given), name);
    if (said == 0 && given == 0 && used)
      throw InputError(fmt::format("has a row of a group whose size no row says (comm_group_size); give it beside the "
                                   "table: --group-sizes {}=N",
                                   key),
                       name, *used);
    return std::max({said, given, 1u});
  };
  using enum GroupKind;
  order.tp = chosen("tp", sizes.of(tensor), options.groups.tp, sizes.first_use({tensor}));
  const std::uint32_t stages = sizes.of(pipeline) > 0 ? sizes.of(pipeline) : sections > 1 ? sections : 0;
  order.pp = chosen("pp", stages, options.groups.pp, sizes.first_use({pipeline, embedding}));
  const std::uint32_t by_tensor = sizes.of(expert_tensor) / order.tp;
  order.ep = chosen("ep", sizes.of(expert) > 0 ? sizes.of(expert) : by_tensor, options.groups.ep,
                    sizes.first_use({expert, expert_data, expert_tensor}));
}

RankOrder order_of(const std::vector<Section>& sections, const Sizes& sizes, const RunOptions& options,
                   const std::string& name) {
  std::set<std::uint32_t> ranks;
  for (const Section& section : sections) ranks.insert(section.ranks.begin(), section.ranks.end());
  RankOrder order;
  read_parallelism(order, sizes, static_cast<std::uint32_t>(sections.size()), options, name);
  const std::uint64_t by_groups = std::uint64_t{order.tp} * order.pp * std::max(sizes.of(GroupKind::data), 1u);
  if (options.gpus)
    order.gpus = *options.gpus;
  else if (!ranks.empty())
    order.gpus = static_cast<std::uint32_t>(ranks.size());
  else if (sizes.of(GroupKind::data) > 0 && by_groups <= programs::kMaxRanks)
    order.gpus = static_cast<std::uint32_t>(by_groups);
  else
    throw InputError("does not say how many ranks it is for; give --ranks N", name);
  if (!ranks.empty() && (ranks.size() != order.gpus || *ranks.rbegin() + 1 != ranks.size()))
    throw InputError(
        fmt::format("lists {} ranks up to rank {}, where there are {}", ranks.size(), *ranks.rbegin(), order.gpus),
        name);
  try {
    order.check();
  } catch (const InputError& error) {
    throw InputError(error.what(), name);
  }
  sizes.check(order);
  return order;
}

/// Throws InputError for a table without sections whose transfers are with the next stage alone, or with the previous
/// one: AICB writes what its own rank does, and the others would wait for what is not there.
void check_stages(const std::vector<Section>& sections, const std::string& name) {
  if (sections.size() != 1 || !sections.front().ranks.empty()) return;
  const Row *with_next = nullptr, *with_previous = nullptr;
  for (const Row& row : sections.front().rows)
    if (row.kind == RowKind::transfer) (row.is_to_next != row.receives ? with_next : with_previous) = &row;
  if ((with_next == nullptr) == (with_previous == nullptr)) return;
  throw InputError(
      fmt::format("has transfers with the {} stage alone: it is the table of one stage, and the others' are "
                  "needed too, each behind a line '[ pp_stage0: [rank0, rank1] ]' with its ranks",
                  with_next != nullptr ? "next" : "previous"),
      name, (with_next != nullptr ? with_next : with_previous)->line);
}

/// Builds the programs of a section's stages.
class Importer {
 public:
  Importer(const RankOrder& order, programs::Imported& to, const std::string& name)
      : order_(order), to_(to), names_(to.programs.names), dimensions_(order, to.programs.ranks), name_(name) {
    to.programs.ranks.program_of_rank.assign(order.gpus, kNone);
  }

  void add(const Section& section) {
    std::vector<std::uint32_t> ranks = section.ranks;
    if (ranks.empty())
      for (std::uint32_t rank = 0; rank < order_.gpus; ++rank) ranks.push_back(rank);
    left_out_ += section.before;
    if (!section.has_end)
      to_.account.push_back(fmt::format(
          "no epoch_end stands behind the last epoch, from line {} on: it is taken as a whole step, of which "
          "rows lack if the table was cut",
          section.rows.front().line));
    const bool by_stages = std::any_of(section.rows.begin(), section.rows.end(), [](const Row& row) {
      return row.kind == RowKind::transfer || row.group == GroupKind::embedding;
    });
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_stage;
    for (const std::uint32_t rank : ranks) by_stage[by_stages ? rank / order_.stage_ranks() : 0].push_back(rank);
    for (const auto& [stage, of_stage] : by_stage) {
      add(section, stage);
      for (const std::uint32_t rank : of_stage) {
        std::uint32_t& program = to_.programs.ranks.program_of_rank[rank];
        if (program != kNone) throw InputError(fmt::format("has rank {} in two sections", rank), name_);
        program = static_cast<std::uint32_t>(to_.programs.programs.size() - 1);
      }
    }
  }

  void finish() {
    if (left_out_ > 0)
      to_.account.push_back(fmt::format("{} operations of epochs before the last one are left out", left_out_));
    if (at_ends_ > 0)
      to_.account.push_back(
          fmt::format("{} transfers that the first or the last stage does not have are left out", at_ends_));
    if (without_partner_ > 0)
      to_.account.push_back(
          fmt::format("{} communications are left out: of 0 bytes, or in groups of one rank", without_partner_));
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void add(const Section& section, std::uint32_t stage) {
    programs::RankProgram& program = to_.programs.programs.emplace_back();
    program.name = order_.pp > 1 ? fmt::format("stage {}", stage) : "all";
    StepBuilder builder(program, names_);
    bool was_transfer = false;
    for (const Row& row : section.rows) add(row, stage, builder, was_transfer);
    to_.dependencies.exact += builder.waits();
    if (program.ops.empty())
      throw InputError(fmt::format("has nothing that takes time in its last epoch, the rows behind the last epoch_end "
                                   "but one{}: {} communications are of 0 bytes or in groups of one rank",
                                   order_.pp > 1 ? fmt::format(", for stage {}", stage) : "", without_partner_),
                       name_, section.rows.empty() ? 0 : section.rows.front().line);
  }

  /// `was_transfer`: the row before is a transfer, with which this one is in one batch if it is another: Megatron-LM's
  /// send_forward_recv_backward, whose ends AICB writes one after the other.
  void add(const Row& row, std::uint32_t stage, StepBuilder& builder, bool& was_transfer) {
    if (row.kind == RowKind::computation) {
      was_transfer = false;
      programs::KernelWork work;
      work.measured_us = row.us;
      work.shape.gemm = row.product;
      return builder.next("compute", row.stage.empty() ? "computation" : row.stage, work);
    }
    Communication work;
    work.bytes = row.bytes;
    if (row.kind == RowKind::transfer) {
      const bool towards_next = row.is_to_next != row.receives;  // the neighbour is the next stage
      if (towards_next ? stage + 1 == order_.pp : stage == 0) {
        ++at_ends_;
        return;
      }
      work.dimension = dimensions_.to_neighbour(row.is_to_next);
      work.kind = Kind::send;
      work.receives = row.receives;
      const std::string name = fmt::format("{} {}", row.stage, row.receives ? "receive" : "send");
      const std::string stream =
          fmt::format("{}_{}", row.receives ? "receive" : "send", row.is_to_next ? "next" : "prev");
      was_transfer ? builder.along(stream, name, work) : builder.next(stream, name, work);
      was_transfer = true;
      return;
    }
    was_transfer = false;
    const std::optional<std::uint32_t> dimension = dimensions_.of(*row.group, true);
    const bool is_inner = *row.group == GroupKind::embedding && stage > 0 && stage + 1 < order_.pp;
    if (!dimension || row.bytes == 0 || is_inner) {
      ++without_partner_;
      return;
    }
    work.dimension = *dimension;
    work.kind = row.collective;
    builder.next(stream_name(*row.group, true), fmt::format("{} {}", row.stage, core::collective::name_of(work.kind)),
                 work);
  }

  RankOrder order_;
  programs::Imported& to_;
  programs::Names names_;
  Dimensions dimensions_;
  const std::string& name_;
  std::size_t left_out_ = 0, at_ends_ = 0, without_partner_ = 0;
};

}  // namespace

bool is_collectives_file(std::string_view text) {
  while (text.starts_with('[')) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.starts_with("comm_type,comm_group,");
}

programs::Imported parse_collectives(std::string_view text, const std::string& name, const RunOptions& options) {
  const std::vector<Section> sections = parse_sections(text, name);
  check_stages(sections, name);
  const RankOrder order = order_of(sections, Sizes(sections, name), options, name);
  programs::Imported result;
  result.programs.name = name.substr(name.rfind('/') + 1);
  result.programs.origin = fmt::format("AICB table {}", name);
  result.programs.slowed = core::workload::SlowedKernels::none;
  Importer importer(order, result, name);
  for (const Section& section : sections) importer.add(section);
  importer.finish();
  for (std::uint32_t rank = 0; rank < order.gpus; ++rank)
    if (result.programs.ranks.program_of_rank[rank] >= result.programs.programs.size())
      throw InputError(fmt::format("has no section of rank {}", rank), name);
  programs::check_communication(result.programs, name);
  result.account.push_back(
      fmt::format("tp {}, ep {}, pp {}, dp {} on {} GPUs", order.tp, order.ep, order.pp, order.dp(), order.gpus));
  result.programs.notes.push_back(
      "operations run one after the other, as AICB issues them; the table has no kernels "
      "where it has no rows of computation");
  return result;
}

programs::Imported read_collectives(const std::string& path, const RunOptions& options) {
  return parse_collectives(import::read_table_text(path), path, options);
}

}  // namespace manyworlds::experiments::simai
