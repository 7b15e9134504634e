// Selection of models, and judgement of BLAS libraries.
#include <gtest/gtest.h>

#include "core/test_text.h"
#include "tasks/blas_check.h"
#include "tasks/data/readers.h"
#include "tasks/data/temp_folder.h"
#include "tasks/load_task.h"
#include "tasks/model_choice.h"

namespace drover {
namespace {

TEST(ModelChoice, ProposesTheNearestName) {
  for (const std::string_view model : known_models()) {
    EXPECT_TRUE(check_model_name(std::string(model)).ok());
  }
  const Status unknown = check_model_name("resnet-20");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error(), is_error(ErrorKind::kInvalidInput, "resnet-20"));
  EXPECT_THAT(unknown.error().message, proposes("resnet20"));
}

TEST(ModelChoice, ChecksTheKindOfData) {
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
    EXPECT_THAT(check_model_fits(model, rows).error(),
                is_error(ErrorKind::kInvalidInput, model, "mlp", "logistic"));
    EXPECT_THAT(check_model_fits(model, text).error(),
                is_error(ErrorKind::kInvalidInput, model, "transformer"));
  }
  EXPECT_TRUE(check_model_fits("transformer", text).ok());
  EXPECT_FALSE(check_model_fits("transformer", images).ok());
  text.test.bytes.resize(kTextContext);
  EXPECT_THAT(check_model_fits("transformer", text).error(),
              is_error(ErrorKind::kInvalidInput, kTextContext));
  images.height = 15;
  EXPECT_THAT(check_model_fits("lenet", images).error(),
              is_error(ErrorKind::kInvalidInput, "lenet", "16 x 16", 15));
}

TEST(LoadTask, ReportsErrorsBeforeItLoadsLibtorch) {
  TaskSpec spec;
  spec.model = "lennet";
  EXPECT_THAT(load_task(spec).error().message, proposes("lenet"));
  spec.model = "transformer";
  spec.data = "generated";
  EXPECT_THAT(load_task(spec).error(),
              is_error(ErrorKind::kInvalidInput, "transformer", "generated", "lenet"));
}

TEST(BlasCheck, RecognizesDebiansLibraries) {
  const BlasReport openmp = judge_blas(
      "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY USE_OPENMP Cooperlake MAX_THREADS=64", "x");
  EXPECT_TRUE(openmp.is_openblas);
  EXPECT_EQ(openmp.threading, BlasThreading::kOpenMp);
  EXPECT_EQ(openmp.advice, "");
  const BlasReport serial =
      judge_blas("OpenBLAS 0.3.21 DYNAMIC_ARCH Cooperlake SINGLE_THREADED", "x");
  EXPECT_EQ(serial.threading, BlasThreading::kSingle);
  EXPECT_THAT(serial.advice, mentions("libopenblas0-openmp"));
  const BlasReport pthreads =
      judge_blas("OpenBLAS 0.3.21 DYNAMIC_ARCH Cooperlake MAX_THREADS=64", "x");
  EXPECT_EQ(pthreads.threading, BlasThreading::kPthreads);
  const BlasReport reference = judge_blas("", "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3");
  EXPECT_FALSE(reference.is_openblas);
  EXPECT_THAT(reference.advice, mentions("libopenblas0-openmp"));
  EXPECT_NE(reference.advice, serial.advice);
  EXPECT_FALSE(judge_blas("", "").advice.empty());
}

}  // namespace
}  // namespace drover
