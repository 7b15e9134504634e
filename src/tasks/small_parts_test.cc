// Choosing models and judging a BLAS.
#include <gtest/gtest.h>

#include "tasks/blas_check.h"
#include "tasks/data/readers.h"
#include "tasks/data/temp_folder.h"
#include "tasks/load_task.h"
#include "tasks/model_choice.h"

namespace drover {
namespace {

TEST(ModelChoice, OffersTheNearestName) {
  for (const std::string_view model : known_models()) {
    EXPECT_TRUE(check_model_name(std::string(model)).ok());
  }
  const Status unknown = check_model_name("resnet-20");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("Did you mean 'resnet20'?"), std::string::npos)
      << unknown.error().message;
}

TEST(ModelChoice, KnowsWhoLearnsFromWhat) {
  Dataset images = generate_images(1, 4);
  Dataset rows;
  rows.kind = DataKind::kRows;
  rows.width = 3;
  Dataset text = generate_text(1, 1000);
  for (const char* model : {"logistic", "mlp", "mlp25m"}) {
    EXPECT_TRUE(check_model_fits(model, images).ok());
    EXPECT_TRUE(check_model_fits(model, rows).ok());
    EXPECT_FALSE(check_model_fits(model, text).ok());
  }
  for (const char* model : {"lenet", "lenet-wide", "resnet20"}) {
    EXPECT_TRUE(check_model_fits(model, images).ok());
    EXPECT_NE(check_model_fits(model, rows).error().message.find("try model mlp or logistic"),
              std::string::npos);
    EXPECT_NE(check_model_fits(model, text).error().message.find("try model transformer"),
              std::string::npos);
  }
  EXPECT_TRUE(check_model_fits("transformer", text).ok());
  EXPECT_FALSE(check_model_fits("transformer", images).ok());
  text.test.bytes.resize(kTextContext);
  EXPECT_NE(check_model_fits("transformer", text).error().message.find("too short"),
            std::string::npos);
  images.height = 15;
  EXPECT_NE(check_model_fits("lenet", images).error().message.find("at least 16 x 16"),
            std::string::npos);
}

TEST(LoadTask, TellsMistakesBeforeItLoadsAnything) {
  TaskSpec spec;
  spec.model = "lennet";
  EXPECT_NE(load_task(spec).error().message.find("Did you mean 'lenet'?"), std::string::npos);
  spec.model = "transformer";
  spec.data = "generated";
  EXPECT_NE(load_task(spec).error().message.find("learns from text"), std::string::npos);
}

TEST(BlasCheck, KnowsTheDebianOnes) {
  const BlasReport openmp = judge_blas(
      "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY USE_OPENMP Cooperlake MAX_THREADS=64", "x");
  EXPECT_TRUE(openmp.is_openblas);
  EXPECT_EQ(openmp.threading, BlasThreading::kOpenMp);
  EXPECT_EQ(openmp.advice, "");
  const BlasReport serial =
      judge_blas("OpenBLAS 0.3.21 DYNAMIC_ARCH Cooperlake SINGLE_THREADED", "x");
  EXPECT_EQ(serial.threading, BlasThreading::kSingle);
  EXPECT_NE(serial.advice.find("wrong numbers"), std::string::npos);
  const BlasReport pthreads =
      judge_blas("OpenBLAS 0.3.21 DYNAMIC_ARCH Cooperlake MAX_THREADS=64", "x");
  EXPECT_EQ(pthreads.threading, BlasThreading::kPthreads);
  const BlasReport reference = judge_blas("", "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3");
  EXPECT_FALSE(reference.is_openblas);
  EXPECT_NE(reference.advice.find("slower"), std::string::npos);
  EXPECT_FALSE(judge_blas("", "").advice.empty());
}

}  // namespace
}  // namespace drover
