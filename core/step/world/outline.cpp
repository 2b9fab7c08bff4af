#include "core/step/world/outline.hpp"

#include <algorithm>
#include <map>

#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::step {
namespace {

/// An operation of a kind of groups, as it goes over connections.
struct Shaped {
  std::uint64_t times = 0;
  collective::Shape shape;
  std::size_t transfers = 0;
  std::uint32_t pairs = 0;
  std::uint32_t number = 0;  // of the shape
};
using ByKind = std::vector<std::vector<Shaped>>;

ByKind shaped(const Configuration& configuration, const Operations& operations, Layout& layout, Dags& dags) {
  ByKind all;
  std::map<collective::Shape, std::uint32_t> numbers;
  for (const GroupKind& kind : layout.kinds()) {
    std::vector<Shaped>& made = all.emplace_back();
    for (const auto& operation : operations.of(kind)) {
      const collective::Shape shape = shape_of(configuration, kind, operation.kind, operation.bytes, operation.split);
      const auto same = std::find_if(made.begin(), made.end(), [&](const Shaped& one) { return one.shape == shape; });
      if (same != made.end()) {  // unequal shares may come to equal ones
        same->times += operation.times;
        continue;
      }
      const auto dag = dags.like(shape);
      const auto number = numbers.try_emplace(shape, static_cast<std::uint32_t>(numbers.size())).first->second;
      made.push_back({operation.times, shape, dag->transfers.size(), layout.pairs_number(*dag), number});
    }
  }
  return all;
}

/// What options do not hold: loads of experts that the router gives, and orders from a file.
void write_files(sharing::Writer& writer, const Configuration& of) {
  if (of.model.routing) writer.text("routing").key(of.model.routing->key);
  if (of.strategy.written) writer.text("schedule").key(workload::key_of(*of.strategy.written));
}

/// The times that measurements give to kernels, in the order of the work. Rows of a table that fit nothing here say
/// nothing.
void write_measured(sharing::Writer& writer, const Configuration& of) {
  if (!of.gpu.measured) return;
  sharing::Writer times("measured");
  std::int64_t place = 0, measured = 0;
  const auto write = [&](const compute::Price& price) {
    ++place;
    if (price.level == compute::Level::model) return;
    ++measured;
    times.integer(place).integer(static_cast<std::int64_t>(price.level)).integer(price.ps);
  };
  for (const workload::RankClass& one : workload::rank_classes(of.model, of.strategy)) {
    for (const workload::PartWork& part : workload::stage_work(of.model, of.strategy, of.gpu, one).parts)
      for (const workload::Pass* pass : {&part.forward, &part.backward})
        for (const workload::Phase& phase : *pass)
          for (const workload::Work& work : phase.tape)
            if (work.kind == workload::Work::Kind::kernel) write(work.price);
    for (const compute::Kernel& kernel :
         workload::optimizer_kernels(of.strategy, workload::stage_parameters(of.model, of.strategy, one.stage)))
      write(compute::price(kernel, of.gpu));
  }
  if (measured > 0) writer.key(times.finish());
}

/// GPUs of other kinds, and on which the ranks sit.
void write_machines(sharing::Writer& writer, const Configuration& of) {
  if (!of.is_mixed()) return;
  writer.text("machines").integer(static_cast<std::int64_t>(of.other_gpus.size())).real(of.gpu.pace);
  for (const compute::Gpu& gpu : of.other_gpus) {
    write_options(writer, compute::gpu_options().read(gpu));
    writer.real(gpu.pace);
  }
  const Arrangement arrangement = arrangement_of(of);
  const std::int64_t ranks = arrangement.tp * arrangement.cp * arrangement.dp * arrangement.pp;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) writer.integer(arrangement.machines.at(gpu_of(arrangement, rank)));
}

sharing::Key step_key(const Configuration& configuration, const ByKind& by_kind, Layout& layout) {
  sharing::Writer writer("step");
  write_options(writer, workload::model_options().read(configuration.model));
  write_options(writer, workload::strategy_options().read(configuration.strategy));
  write_options(writer, workload::stack_options().read(configuration.strategy.stack));
  write_options(writer, compute::gpu_options().read(configuration.gpu));
  write_files(writer, configuration);
  write_measured(writer, configuration);
  write_machines(writer, configuration);
  writer.integer(configuration.strategy.dp).integer(static_cast<std::int64_t>(configuration.composition));
  writer.integer(configuration.limit.link_hops).integer(configuration.limit.events);
  if (configuration.tick_ns > 0) writer.text("tick").integer(configuration.tick_ns);
  write_transport(writer, configuration.transport);
  std::vector<std::vector<std::uint32_t>> pairs_of_kind;
  for (const auto& operations : by_kind) {
    std::vector<std::uint32_t>& pairs = pairs_of_kind.emplace_back();
    writer.integer(static_cast<std::int64_t>(operations.size()));
    for (const Shaped& operation : operations) {
      write_shape(writer, operation.shape);
      if (std::find(pairs.begin(), pairs.end(), operation.pairs) == pairs.end()) pairs.push_back(operation.pairs);
    }
  }
  return writer.key(layout.whole_form(pairs_of_kind)).finish();
}

}  // namespace

Operations::Operations(const Configuration& configuration) {
  const auto orders = workload::pipeline_orders(configuration.model, configuration.strategy, configuration.gpu);
  for (const auto& [of, ranks] : classes_of(arrangement_of(configuration))) {
    const workload::Program program =
        workload::build_program(configuration.model, configuration.strategy, configuration.gpu_of(of), orders, of);
    in_programs_.push_back(program.ops.size());
    auto& by_role = by_class_.emplace_back();
    for (const workload::Op& op : program.ops) {
      if (!op.is_collective) continue;
      std::vector<Operation>& known = by_role[static_cast<std::size_t>(op.role)];
      const collective::Split& split = program.split_of(op);
      auto same = std::find_if(known.begin(), known.end(), [&](const Operation& one) {
        return one.kind == op.kind && one.bytes == op.bytes && one.split == split;
      });
      if (same == known.end()) same = known.insert(same, {op.kind, op.bytes, split, 0});
      ++same->times;
    }
  }
}

sharing::Key operations_key(const Configuration& configuration) {
  sharing::Writer writer("operations");
  write_options(writer, workload::model_options().read(configuration.model));
  write_options(writer, workload::strategy_options().read(configuration.strategy));
  write_options(writer, workload::stack_options().read(configuration.strategy.stack));
  write_options(writer, compute::gpu_options().read(configuration.gpu));
  write_files(writer, configuration);
  write_measured(writer, configuration);
  write_machines(writer, configuration);
  return writer.integer(configuration.strategy.dp).finish();
}

Outline outline_of(const Configuration& configuration, const Operations& operations, Layout& layout, Dags& dags) {
  const ByKind by_kind = shaped(configuration, operations, layout, dags);
  Outline made;
  made.step = step_key(configuration, by_kind, layout);
  for (std::uint32_t number = 0; number < layout.classes().size(); ++number)
    made.cost += static_cast<double>(operations.in_program(number) * layout.class_size(number));
  const sharing::Key transport = transport_key(configuration.transport);
  std::vector<std::vector<bool>> seen;  // by numbers of shape and form
  std::uint32_t use = 0;
  for (std::uint32_t group = 0; group < layout.groups().size(); ++group)
    for (const Shaped& operation : by_kind[layout.groups()[group].kind]) {
      const Connections& connections = *layout.connect(group, operation.pairs);
      made.instances += operation.times;
      if (layout.groups()[group].role == workload::Role::data)
        made.cost += static_cast<double>(operation.times * operation.transfers);
      if (seen.size() <= operation.number) seen.resize(operation.number + 1, std::vector<bool>(layout.forms()));
      if (!seen[operation.number][connections.form_number]) {
        seen[operation.number][connections.form_number] = true;
        made.collectives.push_back({collective_key(operation.shape, connections.form, transport), use,
                                    operation.transfers, static_cast<std::uint32_t>(operation.shape.members)});
      }
      ++use;
    }
  return made;
}

}  // namespace manyworlds::core::step
