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
  // A worker that brings learning rules.
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

TEST_F(ModelAgreementTest, TheFirstModelDecides) {
  ModelAgreement model({}, false, {});
  EXPECT_FALSE(model.layout());
  EXPECT_TRUE(model.admit(worker()).ok());
  ASSERT_TRUE(model.layout());
  EXPECT_EQ(model.layout()->tensors(), worker().tensors);
  EXPECT_TRUE(model.admit(evaluator()).ok());
  const std::string why = refusal(model, worker(65));
  EXPECT_TRUE(has(why, "other processes: 97 parameters in 2 tensors instead of 96")) << why;
  EXPECT_TRUE(has(why, "first different tensor: w (its size")) << why;
  EXPECT_EQ(model.layout()->tensors(), worker().tensors);
}

TEST_F(ModelAgreementTest, RefusesAModelWithoutTensors) {
  ModelAgreement model({}, false, {});
  EXPECT_EQ(refusal(model, {.role = Role::kWorker}), "its model has no tensors");
  EXPECT_FALSE(model.layout());
}

TEST_F(ModelAgreementTest, NamesMissingAndExtraTensors) {
  ModelAgreement model({}, false, {});
  Hello shorter = worker();
  shorter.tensors.pop_back();
  ASSERT_TRUE(model.admit(worker()).ok());
  std::string why = refusal(model, shorter);
  EXPECT_TRUE(has(why, "first different tensor: none instead of b")) << why;
  ModelAgreement other({}, false, {});
  ASSERT_TRUE(other.admit(shorter).ok());
  why = refusal(other, worker());
  EXPECT_TRUE(has(why, "first different tensor: b instead of none")) << why;
}

TEST_F(ModelAgreementTest, ARunThatContinuesRefusesOtherModels) {
  ModelAgreement model({}, false, ModelAgreement::Prior{.tensors = worker().tensors});
  EXPECT_FALSE(model.layout()) << "no peer has brought it yet";
  const std::string why = refusal(model, worker(65));
  EXPECT_TRUE(has(why, "that of the checkpoint")) << why;
  EXPECT_TRUE(has(why, "without --resume")) << why;
  EXPECT_FALSE(model.layout());
  EXPECT_TRUE(model.admit(worker()).ok());
  EXPECT_TRUE(has(refusal(model, worker(65)), "that of the other processes"));
}

TEST_F(ModelAgreementTest, TheFirstWorkerDecidesTheLearningRules) {
  LearningRules rules;
  rules.optimizer.ema_decay = 0.5;
  rules.schedule.kind = ScheduleKind::kCosine;
  ModelAgreement model(rules, true, {});
  EXPECT_TRUE(model.admit(evaluator()).ok()) << "an evaluator does not learn";
  EXPECT_EQ(model.rules(), rules);
  EXPECT_TRUE(has(refusal(model, worker()), "no optimiser settings"));
  ASSERT_TRUE(model.admit(script(0.25)).ok());
  EXPECT_EQ(model.rules().optimizer.kind, OptimizerKind::kAdam);
  EXPECT_EQ(model.rules().optimizer.ema_decay, 0.5) << "this setting is the run's";
  EXPECT_EQ(model.rules().schedule.kind, ScheduleKind::kConstant);
  EXPECT_EQ(model.rules().schedule.base, 0.25);
  EXPECT_TRUE(model.admit(script(0.25)).ok());
  EXPECT_TRUE(has(refusal(model, script(0.5)),
                  "or its settings differ from those of the other workers (adam"));
  EXPECT_EQ(model.rules().schedule.base, 0.25);
}

TEST_F(ModelAgreementTest, ARefusedWorkerChangesNothing) {
  ModelAgreement model({}, true, {});
  EXPECT_FALSE(model.admit(worker()).ok()) << "it brings no learning rules";
  EXPECT_FALSE(model.layout()) << "otherwise the plan would be sent without learning rules";
  Hello other = script(0.1);
  other.tensors = {{"another", 7}};
  EXPECT_TRUE(model.admit(other).ok()) << "it is the first";
  EXPECT_EQ(model.layout()->tensors(), other.tensors);
}

TEST_F(ModelAgreementTest, AWorkerRefusedForItsOptimiserChangesNothing) {
  const ModelAgreement::Prior prior{.tensors = worker().tensors,
                                    .settings = texts_of(OptimizerSettings{})};
  ModelAgreement model({}, true, prior);
  EXPECT_FALSE(model.admit(script(0.1)).ok()) << "Adam is not the optimiser of the checkpoint";
  EXPECT_FALSE(model.layout());
}

TEST_F(ModelAgreementTest, RulesOfTheRunAreFinalUnlessWorkersBringTheModel) {
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
  EXPECT_TRUE(
      has(refusal(model, script(0.25)), "its optimiser differs from that of the checkpoint"));
  EXPECT_EQ(model.rules(), LearningRules{}) << "a refused worker changes no rules";
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
