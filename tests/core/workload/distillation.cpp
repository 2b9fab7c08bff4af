// A teacher beside its student: parameters, FLOPs, traffic and memory against closed forms and against both models
// alone.
#include "core/workload/layer/distillation.hpp"

#include <catch2/catch.hpp>

#include "core/memory/footprint.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/strategy/stage_boundaries.hpp"
#include "tests/core/workload/distilled_models.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Model small_student() {
  Model model = llama(4, 64, 8, 4, 96, 256);
  model.sequence = 32;
  return model;
}
Model small_teacher() {
  return llama(8, 128, 8, 8, 320, 256);
}

/// The same as a model that is trained, without dropout.
Model alone(const Model& student) {
  Model model = *student.teacher;
  model.frozen = false;
  return model;
}

std::int64_t all_reduces(const OpList& ops, std::int64_t bytes) {
  std::int64_t count = 0;
  for (const WorkItem& work : ops)
    if (const CollectiveStart* start = work.start())
      count += start->kind == collective::Kind::all_reduce && start->bytes == bytes ? 1 : 0;
  return count;
}

std::int64_t kernel_bytes(const OpList& ops) {
  std::int64_t sum = 0;
  for (const WorkItem& work : ops)
    if (work.kernel()) sum += work.kernel()->shape.bytes;
  return sum;
}

compute::Gpu some_gpu() {
  compute::Gpu gpu;
  gpu.matrix_tflops = 300, gpu.memory_gb_per_s = 2'000, gpu.compute_units = 100, gpu.clock_ghz = 1;
  return gpu;
}

Strategy replicated(std::int64_t tp, std::int64_t pp) {
  Strategy strategy = layout(tp, pp, 2, 16);
  strategy.dp = 2;
  return strategy;
}

}  // namespace

TEST_CASE("a rank has its stage's parameters of both models, of which the student's are trained") {
  // One layer of the teacher: queries, keys and values of 128 x 384, their projection, three matrices of 128 x 320, and
  // two norms; table and output layer of 256 x 128, and the last norm.
  constexpr std::int64_t kLayer = 128 * 384 + 128 * 128 + 3 * 128 * 320 + 2 * 128;
  const Model student = small_student(), taught = taught_by(student, small_teacher());
  const Strategy one = replicated(1, 1);
  CHECK(teacher_parameters(taught, one, 0).total() == 8 * kLayer + 2 * 256 * 128 + 128);
  for (const std::int64_t tp : {1, 2})
    for (const std::int64_t pp : {1, 2, 4})
      for (std::int64_t stage = 0; stage < pp; ++stage) {
        CAPTURE(tp, pp, stage);
        const Strategy s = replicated(tp, pp);
        const Parameters of_teacher = stage_parameters(alone(taught), s, stage);
        CHECK(teacher_parameters(taught, s, stage).total() == of_teacher.total());
        CHECK(stage_parameters(taught, s, stage).total() ==
              stage_parameters(student, s, stage).total() + of_teacher.total());
        CHECK(trained_stage_parameters(taught, s, stage).total() == stage_parameters(student, s, stage).total());
        std::int64_t of_parts = 0, trained = 0;
        const StageWork work = stage_work_without_costs(taught, s, stage);
        for (const auto& chunk : work.chunks)
          for (const ModelPart part : chunk)
            of_parts += work.of(part).parameters.total(), trained += work.of(part).trained.total();
        CHECK(of_parts == stage_parameters(taught, s, stage).total());
        CHECK(trained == stage_parameters(student, s, stage).total());
      }
  CHECK(model_parameters(taught) == model_parameters(student));
  CHECK(trained_parameters(taught) == model_parameters(student));
}

TEST_CASE("a teacher's layers are dealt out evenly, whatever its student's are") {
  Strategy s = replicated(1, 4);
  s.stage_layers = {1, 1, 2, 0};
  s.recompute = Recompute::full;
  const Model taught = taught_by(small_student(), small_teacher());
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const auto parts = stage_work_without_costs(taught, s, stage).chunks.front().size();
    const std::size_t ends = stage == 0 || stage == 3 ? 2 : 0;  // of both models
    CHECK(parts == ends + 2 + static_cast<std::size_t>(s.stage_layers[static_cast<std::size_t>(stage)]));
  }
}

TEST_CASE("a sequence costs the student's training and the teacher's forward pass") {
  // Narayanan et al. 2021, appendix: a forward pass of GPT has 24 s l h^2 + 4 s^2 l h + 2 s h V FLOPs.
  const auto forward = [](const Model& m) {
    return 24 * m.sequence * m.layers * m.hidden * m.hidden + 4 * m.sequence * m.sequence * m.layers * m.hidden +
           2 * m.sequence * m.hidden * m.vocabulary;
  };
  Model student = gpt(4, 64, 8, 500), teacher = gpt(6, 128, 8, 500);
  student.sequence = 32;
  const Model taught = taught_by(student, teacher);
  CHECK(model_flops_per_sequence(student) == 3 * forward(student));
  CHECK(forward_flops_per_sequence(*taught.teacher) == forward(*taught.teacher));
  CHECK(model_flops_per_sequence(taught) == 3 * forward(student) + forward(*taught.teacher));
}

TEST_CASE("kernels of a step have the FLOPs of the student's training and of the teacher's forward pass") {
  const auto flops_of = [](const StageWork& work, bool forward, bool backward) {
    std::int64_t sum = 0;
    for (const ModelPart part : work.chunks.front())
      for (const auto& [wanted, pass] :
           {std::pair{forward, &work.of(part).forward}, std::pair{backward, &work.of(part).backward}})
        for (const Phase& phase : *pass)
          for (const WorkItem& item : phase.ops)
            if (wanted && item.kernel()) sum += item.kernel()->shape.flops;
    return sum;
  };
  const Model student = small_student(), taught = taught_by(student, small_teacher());
  for (const std::int64_t pp : {1, 2}) {
    const Strategy s = replicated(2, pp);
    for (std::int64_t stage = 0; stage < pp; ++stage) {
      const StageWork both = stage_work_without_costs(taught, s, stage),
                      own = stage_work_without_costs(student, s, stage),
                      teacher = stage_work_without_costs(alone(taught), s, stage);
      CHECK(flops_of(both, true, false) == flops_of(own, true, false) + flops_of(teacher, true, false));
      CHECK(flops_of(both, false, true) == flops_of(own, false, true));
    }
  }
}

TEST_CASE("the divergence of sharded distributions has ModelOpt's all-reduces, and kernels of all logits") {
  const Model student = small_student();
  for (const std::int64_t tp : {1, 2}) {
    const Strategy s = replicated(tp, 1);
    const RankShapes shapes = rank_shapes(student, s);
    const auto head = head_operators(taught_by(student, small_teacher()), s);
    const Operator& loss = head.back();
    CAPTURE(tp);
    CHECK(loss.name == "distillation_loss");
    CHECK(head.size() == head_operators(student, s).size());
    // LogitsKLLoss: maximum and sum of the teacher and of the student; the backward pass of all_reduce_autograd().
    CHECK(all_reduces(loss.forward, 4 * shapes.tokens) == (tp > 1 ? 4 : 0));
    CHECK(all_reduces(loss.backward, 4 * shapes.tokens) == (tp > 1 ? 1 : 0));
    CHECK(kernel_bytes(loss.forward) == (tp > 1 ? 128 : 80) * shapes.logits());
    CHECK(kernel_bytes(loss.backward) == (tp > 1 ? 62 : 42) * shapes.logits());
    const auto both = head_operators(taught_by(student, small_teacher(), DistillationLoss::kl_and_cross_entropy), s);
    CHECK(both.size() == head.size() + 1);
    CHECK(both[both.size() - 2].name == "cross_entropy");
    CHECK(kernel_bytes(both.back().backward) == kernel_bytes(loss.backward) + 6 * shapes.logits());
  }
}

TEST_CASE("replicas exchange what they do without a teacher, and stages the hidden states of both models") {
  const compute::Gpu gpu = some_gpu();
  const Model student = small_student(), taught = taught_by(student, small_teacher());
  for (const std::int64_t zero : {0, 1, 2}) {
    Strategy s = replicated(2, 2);
    s.zero = zero;
    for (std::int64_t stage = 0; stage < 2; ++stage) {
      const Program with = build_program(taught, s, gpu, stage), without = build_program(student, s, gpu, stage);
      CAPTURE(zero, stage);
      CHECK(bytes_by_kind(with, Role::data) == bytes_by_kind(without, Role::data));
      for (const Role role : {Role::send_forward, Role::send_backward})
        CHECK(64 * bytes_by_kind(with, role)[collective::Kind::send] ==
              (64 + 128) * bytes_by_kind(without, role)[collective::Kind::send]);
    }
    CHECK(stage_boundary(taught, s, 1).bytes == 2 * 2 * 32 * (64 + 128));
  }
}

TEST_CASE("a rank holds the student, the teacher's weights in 16 bits, and what the loss has of both models' logits") {
  const compute::Gpu gpu = some_gpu();
  Model student = small_student(), teacher = small_teacher();
  student.vocabulary = teacher.vocabulary = 32'000;  // the loss is where memory peaks
  const Model taught = taught_by(student, teacher);
  for (const std::int64_t tp : {1, 2}) {
    const Strategy s = replicated(tp, 1);
    const auto with = memory::footprint(taught, s, gpu, RankClass{0}),
               without = memory::footprint(student, s, gpu, RankClass{0});
    CAPTURE(tp);
    CHECK(with.weights == without.weights + 2 * stage_parameters(alone(taught), s, 0).total());
    CHECK(with.gradients == without.gradients);
    CHECK(with.optimizer == without.optimizer);
    CHECK(with.activations == without.activations);
    // Kept: 8 bytes of a logit; meanwhile both logits in 16 and 32 bits, and four or three more tensors in fp32.
    CHECK(with.logits == (8 + 12 + (tp > 1 ? 16 : 12)) * rank_shapes(student, s).logits());
  }
}

TEST_CASE("a teacher like the student adds a forward pass to a step") {
  Model student = llama(8, 4'096, 32, 8, 14'336, 2'048);
  student.sequence = 2'048;
  const compute::Gpu gpu = some_gpu();
  const Strategy s = layout(1, 1, 1, 4);
  const Program with = build_program(taught_by(student, student), s, gpu, RankClass{0}),
                without = build_program(student, s, gpu, RankClass{0});
  const auto forward = static_cast<double>(kernel_time(without, StepPart::forward));
  CHECK(static_cast<double>(kernel_time(with, StepPart::forward)) == Approx(2 * forward).epsilon(0.02));
  CHECK(static_cast<double>(kernel_time(with, StepPart::backward)) ==
        Approx(static_cast<double>(kernel_time(without, StepPart::backward))).epsilon(0.02));
}
