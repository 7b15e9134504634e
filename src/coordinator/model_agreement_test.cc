#include "coordinator/model_agreement.h"

#include <gtest/gtest.h>

#include <string>

namespace drover {
namespace {

class ModelAgreementTest : public ::testing::Test {
 protected:
  static Hello worker(uint64_t size = 64) {
    return {.role = Role::kWorker, .tensors = {{"w", size}, {"b", 32}}};
  }
  static Hello evaluator() {
    Hello hello = worker();
    hello.role = Role::kEvaluator;
    return hello;
  }
  // A worker that says how to learn its model.
  static Hello script(double rate) {
    Hello hello = worker();
    hello.learning = Learning{.optimizer = {.kind = OptimizerKind::kAdam}, .rate = rate};
    return hello;
  }
  static std::string refusal(ModelAgreement& model, const Hello& hello) {
    const Status status = model.admit(hello);
    return status ? "" : status.error().message;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(ModelAgreementTest, TheFirstModelIsTheRuns) {
  ModelAgreement model({}, false, {});
  EXPECT_FALSE(model.layout());
  EXPECT_TRUE(model.admit(worker()).ok());
  ASSERT_TRUE(model.layout());
  EXPECT_EQ(model.layout()->tensors(), worker().tensors);
  EXPECT_TRUE(model.admit(evaluator()).ok());
  const std::string why = refusal(model, worker(65));
  EXPECT_TRUE(has(why, "that of the others: 97 parameters in 2 tensors, theirs has 96")) << why;
  EXPECT_TRUE(has(why, "the first that differs is w, in size")) << why;
  EXPECT_EQ(model.layout()->tensors(), worker().tensors);
}

TEST_F(ModelAgreementTest, AModelWithoutTensorsIsNone) {
  ModelAgreement model({}, false, {});
  EXPECT_EQ(refusal(model, {.role = Role::kWorker}), "its model has no tensors");
  EXPECT_FALSE(model.layout());
}

TEST_F(ModelAgreementTest, TensorsThatAreMissingOrTooManyAreNamed) {
  ModelAgreement model({}, false, {});
  Hello shorter = worker();
  shorter.tensors.pop_back();
  ASSERT_TRUE(model.admit(worker()).ok());
  std::string why = refusal(model, shorter);
  EXPECT_TRUE(has(why, "the first that differs is none, where theirs has b")) << why;
  ModelAgreement other({}, false, {});
  ASSERT_TRUE(other.admit(shorter).ok());
  why = refusal(other, worker());
  EXPECT_TRUE(has(why, "the first that differs is b, where theirs has none")) << why;
}

TEST_F(ModelAgreementTest, ARunThatContinuesWantsItsOwnModel) {
  ModelAgreement model({}, false, ModelAgreement::Prior{.tensors = worker().tensors});
  EXPECT_FALSE(model.layout()) << "no peer has brought it yet";
  const std::string why = refusal(model, worker(65));
  EXPECT_TRUE(has(why, "that of the checkpoint")) << why;
  EXPECT_TRUE(has(why, "without --resume")) << why;
  EXPECT_FALSE(model.layout());
  EXPECT_TRUE(model.admit(worker()).ok());
  EXPECT_TRUE(has(refusal(model, worker(65)), "that of the others"));
}

TEST_F(ModelAgreementTest, TheFirstWorkerSaysHowToLearnIt) {
  LearningRules rules;
  rules.optimizer.ema_decay = 0.5;
  rules.schedule.kind = ScheduleKind::kCosine;
  ModelAgreement model(rules, true, {});
  EXPECT_TRUE(model.admit(evaluator()).ok()) << "an evaluator does not learn";
  EXPECT_EQ(model.rules(), rules);
  EXPECT_TRUE(has(refusal(model, worker()), "does not say how"));
  ASSERT_TRUE(model.admit(script(0.25)).ok());
  EXPECT_EQ(model.rules().optimizer.kind, OptimizerKind::kAdam);
  EXPECT_EQ(model.rules().optimizer.ema_decay, 0.5) << "that is the run's";
  EXPECT_EQ(model.rules().schedule.kind, ScheduleKind::kConstant);
  EXPECT_EQ(model.rules().schedule.base, 0.25);
  EXPECT_TRUE(model.admit(script(0.25)).ok());
  EXPECT_TRUE(has(refusal(model, script(0.5)), "is not that of the others (adam"));
  EXPECT_EQ(model.rules().schedule.base, 0.25);
}

TEST_F(ModelAgreementTest, WhereTheRunSaysHowToLearnWorkersDoNot) {
  LearningRules rules;
  rules.schedule.base = 0.125;
  ModelAgreement model(rules, false, {});
  EXPECT_TRUE(model.admit(script(0.25)).ok());
  EXPECT_TRUE(model.admit(script(0.5)).ok());
  EXPECT_EQ(model.rules(), rules);
}

TEST_F(ModelAgreementTest, TheOptimiserOfACheckpointIsKept) {
  const OptimizerSettings sgd{.kind = OptimizerKind::kSgd};
  ModelAgreement model(
      {}, true, ModelAgreement::Prior{.tensors = worker().tensors, .settings = texts_of(sgd)});
  EXPECT_TRUE(has(refusal(model, script(0.25)), "its optimiser is not that of the checkpoint"));
  EXPECT_EQ(model.rules(), LearningRules{}) << "it did not count";
  Hello same = script(0.25);
  same.learning->optimizer = sgd;
  EXPECT_TRUE(model.admit(same).ok());
}

TEST_F(ModelAgreementTest, CheckpointsKeepOptimiserAndSchedule) {
  ModelAgreement model({}, false, {});
  SettingTexts both = texts_of(LearningRules{}.optimizer);
  both.merge(texts_of(LearningRules{}.schedule));
  EXPECT_GT(both.size(), texts_of(LearningRules{}.optimizer).size());
  EXPECT_EQ(model.settings(), both);
}

}  // namespace
}  // namespace drover
