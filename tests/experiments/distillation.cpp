// How a teacher is written, and what a sweep of teachers ends in.
#include "experiments/key_contents/architecture.hpp"

#include <catch2/catch.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "tests/experiments/run_sweep.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using core::workload::DistillationLoss;
using core::workload::Model;

namespace {

Model model_with(const std::vector<std::string>& sets) {
  return read(kSingle, sets).experiments.front().config().configuration.model;
}

}  // namespace

TEST_CASE("a teacher is a model of the catalog, with the student's tokens and without dropout") {
  const Model student = model_with({"model={like: gpt3-1.3b, sequence: 64}", "model.teacher=gpt3-6.7b"});
  const Model teacher = *student.teacher, alone = model_with({"model={like: gpt3-6.7b, sequence: 64}"});
  CHECK(core::workload::model_parameters(teacher) == core::workload::model_parameters(alone));
  CHECK(teacher.sequence == 64);
  CHECK(teacher.frozen);
  CHECK_FALSE(teacher.dropout);
  CHECK(core::workload::teacher_of(student).loss == DistillationLoss::kl);
  CHECK(model_with({}).teacher == nullptr);
  CHECK(model_with({"model.teacher=none"}).teacher == nullptr);
}

TEST_CASE("options replace those of a teacher's entry in the catalog") {
  const Model student = model_with({"model={like: gpt3-1.3b, sequence: 64}",
                                    "model.teacher={like: gpt3-6.7b, layers: 8, loss: kl_and_cross_entropy}"});
  CHECK(student.teacher->layers == 8);
  CHECK(student.teacher->hidden == 4096);
  CHECK(core::workload::teacher_of(student).loss == DistillationLoss::kl_and_cross_entropy);
}

TEST_CASE("without a name a teacher is as its student but for its options, and sizes that follow from these") {
  const Model student = model_with({"model.teacher={layers: 8, hidden: 128, heads: 8}"});
  CHECK(student.teacher->layers == 8);
  CHECK(student.teacher->kv() == 8);
  CHECK(student.teacher->ffn() == 512);
  CHECK(student.teacher->vocabulary == student.vocabulary);
}

TEST_CASE("an experiment's document has its teacher, and is read as the same") {
  for (const char* teacher : {"model.teacher=gpt3-6.7b", "model.teacher={layers: 8}"}) {
    const Experiment first = read(kSingle, {"model={like: gpt3-1.3b, sequence: 64}", teacher}).experiments.front();
    const nlohmann::json base{{"base", document(first.settings)}};
    const Experiment again = read(base.dump()).experiments.front();
    CHECK(first.settings.text("model.teacher") == again.settings.text("model.teacher"));
    const Model one = *first.config().configuration.model.teacher, other = *again.config().configuration.model.teacher;
    CHECK(core::workload::model_options().read(one) == core::workload::model_options().read(other));
  }
}

TEST_CASE("what describes no teacher is refused with what would be right") {
  CHECK_THAT(error_of(kSingle, {"model.teacher=gpt3-67b"}), Contains("gpt3-6.7b"));
  CHECK_THAT(error_of(kSingle, {"model.teacher={layer: 8}"}), Contains("did you mean 'layers'"));
  CHECK_THAT(error_of(kSingle, {"model.teacher={sequence: 64}"}), Contains("the tokens of the student"));
  CHECK_THAT(error_of(kSingle, {"model.teacher={name: gpt3-6.7b}"}), Contains("like: gpt3-6.7b"));
  CHECK_THAT(error_of(kSingle, {"model.teacher=[8]"}), Contains("teacher"));
  CHECK_THAT(error_of(kSingle, {"model.teacher={loss: mse}"}), Contains("one of kl, kl_and_cross_entropy"));
  const std::string stages = error_of(kSingle, {"model.teacher={layers: 5}"});
  CHECK_THAT(stages, Contains("layers of the teacher 5, stages 2"));
}

TEST_CASE("a teacher adds its forward pass to the steps of a sweep, and its weights to memory") {
  const auto ran = run("distillation.yaml");
  REQUIRE(ran.size() == 4);
  const auto with_teacher = [&](const std::string& name, const std::string& loss) {
    for (const auto& [label, one] : ran)
      if (label.find(name) != std::string::npos && (label.find("cross_entropy") != std::string::npos) == !loss.empty())
        return one;
    FAIL("no teacher " << name);
    return Ran{};
  };
  const Ran none = ran.begin()->second, small = with_teacher("llama3-8b", ""), both = with_teacher("llama3-8b", "ce"),
            large = with_teacher("llama3-70b", "");
  CAPTURE(ran.begin()->first, none.step_s, small.step_s, both.step_s, large.step_s);
  // 4.5 billion parameters take 6 FLOPs each, and 8 billion in a forward pass 2: 0.59 of the student's.
  CHECK(small.step_s / none.step_s - 1 > 0.4);
  CHECK(small.step_s / none.step_s - 1 < 0.8);
  CHECK(both.step_s > small.step_s);
  CHECK(small.peak_bytes > none.peak_bytes + 2 * 8'000'000'000 / 4);
  CHECK(large.peak_bytes > small.peak_bytes);
}
