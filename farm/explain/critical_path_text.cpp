#include "farm/explain/critical_path_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/collective/algorithms/registry.hpp"
#include "core/step/layout/role_name.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::size_t kMaxRows = 16, kMaxName = 48;

using core::step::CompiledStep;
using core::workload::CollectiveCall;
using core::workload::Op;
using core::workload::Program;

/// Returns what an operation is called; nothing for kernels of a pipeline's passes, of which there are many.
std::string name_of(const Program& program, const Op& op) {
  if (program.pass_of(op) != nullptr) return "";
  return op.label < program.labels.size() ? program.labels[op.label] : "operation";
}

}  // namespace

CriticalPath critical_path_of(const CompiledStep& compiled, const core::step::Recording& recording) {
  CriticalPath path;
  path.step_ps = recording.end;
  std::map<std::pair<std::string, std::string>, CriticalSum> sums;
  std::set<core::step::RankId> ranks;
  for (const core::step::CriticalSpan& span : core::step::critical_path(compiled, recording)) {
    if (span.end == span.begin) continue;
    const Program& program = compiled.programs()[compiled.layout().class_of(span.rank)];
    const Op& op = program.ops[span.op];
    const CollectiveCall* call = op.collective();
    const std::string kind = call ? core::step::role_name(compiled.configuration(), call->role)
                                  : std::string(core::workload::name_of(op.kernel()->category));
    const std::string name = call ? core::collective::name_of(call->kind) : name_of(program, op);
    CriticalSum& sum = sums.try_emplace({kind, name}, CriticalSum{kind, name}).first->second;
    sum.ps += span.end - span.begin;
    sum.slowed_ps += span.slowed;
    ++sum.operations, ++path.operations;
    ranks.insert(span.rank);
  }
  path.ranks = ranks.size();
  for (auto& [key, sum] : sums) path.sums.push_back(std::move(sum));
  std::stable_sort(path.sums.begin(), path.sums.end(),
                   [](const CriticalSum& a, const CriticalSum& b) { return a.ps > b.ps; });
  return path;
}

std::string critical_path_text(const CriticalPath& path) {
  std::string text = fmt::format("critical path: {} operations on {} ranks, of which each begins when one ends\n",
                                 path.operations, path.ranks);
  const auto row = [&](const std::string& kind, const std::string& name, core::Time ps, std::int64_t operations,
                       core::Time slowed) {
    text += fmt::format("  {:<22}{:<{}}  {:>9}  {:>5.1f} %  {:>7}{}\n", kind, name.substr(0, kMaxName), kMaxName,
                        io::with_si_prefix(static_cast<double>(ps) * 1e-12, "s"),
                        100 * static_cast<double>(ps) / static_cast<double>(path.step_ps), operations,
                        slowed > 0 ? fmt::format("  {} of it beside collectives",
                                                 io::with_si_prefix(static_cast<double>(slowed) * 1e-12, "s"))
                                   : "");
  };
  CriticalSum others;
  for (std::size_t i = 0; i < path.sums.size(); ++i) {
    const CriticalSum& sum = path.sums[i];
    if (i < kMaxRows || path.sums.size() == kMaxRows + 1) {
      row(sum.kind, sum.name, sum.ps, sum.operations, sum.slowed_ps);
    } else {
      others.ps += sum.ps, others.slowed_ps += sum.slowed_ps, others.operations += sum.operations;
    }
  }
  if (others.operations > 0)
    row(fmt::format("{} others", path.sums.size() - kMaxRows), "", others.ps, others.operations, others.slowed_ps);
  return text;
}

nlohmann::ordered_json critical_path_json(const CriticalPath& path) {
  nlohmann::ordered_json sums = nlohmann::ordered_json::array();
  for (const CriticalSum& sum : path.sums)
    sums.push_back({{"kind", sum.kind},
                    {"name", sum.name},
                    {"s", static_cast<double>(sum.ps) * 1e-12},
                    {"slowed_s", static_cast<double>(sum.slowed_ps) * 1e-12},
                    {"operations", sum.operations}});
  return {{"operations", path.operations}, {"ranks", path.ranks}, {"sums", std::move(sums)}};
}

}  // namespace manyworlds::farm
