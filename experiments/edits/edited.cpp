#include "experiments/edits/edited.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/error.hpp"
#include "experiments/edits/make_edit.hpp"
#include "experiments/edits/nothing_selected.hpp"
#include "experiments/edits/replicas.hpp"
#include "experiments/edits/select.hpp"
#include "experiments/programs/check_communication.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::edits {
namespace {

using programs::StreamPrograms;

/// What the operations of all ranks are together.
struct Amount {
  double operations = 0, us = 0, bytes = 0;
};

/// How many ranks run each program.
std::vector<double> ranks_of(const StreamPrograms& all) {
  const auto ranks = programs::ranks_by_program(all.ranks.program_of_rank, all.programs.size());
  return {ranks.begin(), ranks.end()};
}

template <class Work>
std::int64_t bytes_of(const Work& work) {
  return work.bytes;
}
std::int64_t bytes_of(const programs::KernelWork& work) {
  return work.shape.bytes;
}

Amount amount_of(const StreamPrograms& all) {
  Amount sum;
  const std::vector<double> ranks = ranks_of(all);
  for (std::size_t i = 0; i < all.programs.size(); ++i)
    for (const programs::StreamOp& op : all.programs[i].ops) {
      sum.operations += ranks[i];
      std::visit(
          [&](const auto& work) {
            using Work = std::decay_t<decltype(work)>;
            if constexpr (std::is_same_v<Work, programs::HostWork>)
              sum.us += ranks[i] * work.us;
            else
              sum.bytes += ranks[i] * static_cast<double>(bytes_of(work));
            if constexpr (std::is_same_v<Work, programs::KernelWork> || std::is_same_v<Work, programs::CopyWork>)
              sum.us += ranks[i] * work.measured_us.value_or(0);
          },
          op.work);
    }
  return sum;
}

std::string change_text(const char* what, double before, double after, const char* unit) {
  if (before == after) return "";
  return fmt::format("; {} {:.6g} -> {:.6g}{}", what, before, after, unit);
}

/// Returns the names of the streams of all programs.
std::set<std::string> streams_of(const StreamPrograms& all) {
  std::set<std::string> names;
  for (const programs::RankProgram& program : all.programs)
    for (const programs::StreamInfo& stream : program.streams) names.insert(stream.name);
  return names;
}

std::string new_streams_text(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::vector<std::string> added;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
  return added.empty() ? "" : fmt::format("; stream '{}' is new", fmt::join(added, "', '"));
}

/// Returns what waits for an operation that is moved or inserted; null if nothing does that a selection tells.
const Selection* waiting_of(const Action& action) {
  const auto* move = std::get_if<Move>(&action);
  const auto* insert = std::get_if<Insert>(&action);
  const std::optional<Selection>* before = move ? &move->before : insert ? &insert->before : nullptr;
  return before != nullptr && *before ? &**before : nullptr;
}

class Editor {
 public:
  Editor(StreamPrograms& all, const std::string& name) : all_(all), name_(name) {}

  std::string make(const Edit& edit) {
    try {
      if (const auto* wider = std::get_if<Widen>(&edit.action))
        return fmt::format("{}:{}: widen: {}", name_, edit.line, widen(all_, wider->dimension, wider->factor));
      const Amount before = amount_of(all_);
      const std::set<std::string> streams = streams_of(all_);
      double operations = 0;
      const std::vector<std::size_t> programs = separate(all_, edit.selection);
      if (!std::holds_alternative<Hold>(edit.action)) need(edit.selection, programs);
      if (const Selection* waiting = waiting_of(edit.action)) need(*waiting, programs);
      const std::vector<double> ranks = ranks_of(all_);  // which no edit changes
      for (const std::size_t program : programs) {
        const std::vector<std::uint32_t> ops = selected(all_, program, edit.selection);
        if (ops.empty()) continue;
        operations += ranks[program] * static_cast<double>(ops.size());
        make_edit(all_, program, ops, edit.action);
      }
      if (operations == 0)
        throw core::InputError(
            "no operation of these ranks says when it began; traces of PyTorch and Nsight Systems do, and "
            "program files by 'began'");
      const Amount after = amount_of(all_);
      return fmt::format("{}:{}: {}: {:.0f} operations selected{}{}{}{}", name_, edit.line, name_of(edit.action),
                         operations, change_text("operations of all ranks", before.operations, after.operations, ""),
                         change_text("measured and host time", before.us * 1e-3, after.us * 1e-3, " ms"),
                         change_text("bytes", before.bytes, after.bytes, ""),
                         new_streams_text(streams, streams_of(all_)));
    } catch (const core::InputError& error) {
      if (error.located()) throw;
      throw error.at(name_, edit.line);
    }
  }

 private:
  /// Throws where a selection is of no operation of these programs.
  void need(const Selection& selection, const std::vector<std::size_t>& programs) const {
    for (const std::size_t program : programs)
      if (!selected(all_, program, selection).empty()) return;
    throw core::InputError(
        fmt::format("selects no operation of any rank: {}", nothing_selected(all_, programs, selection)), name_,
        selection.line);
  }

  StreamPrograms& all_;
  const std::string& name_;
};

}  // namespace

std::vector<std::string> make_edits(StreamPrograms& programs, const Edits& edits) {
  std::vector<std::string> account;
  Editor editor(programs, edits.name);
  for (const Edit& edit : edits.edits) account.push_back(editor.make(edit));
  programs::check_communication(programs, edits.name);
  return account;
}

}  // namespace manyworlds::experiments::edits
