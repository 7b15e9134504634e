// How a job is fitted to the placement by a launcher.
#include "launch/cluster_seat.h"

#include <gtest/gtest.h>

#include <string>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

Placement mpi_ranks(uint32_t ranks, uint32_t hosts) {
  return {.launcher = LaunchedBy::kOpenMpi,
          .rank = 1,
          .ranks = ranks,
          .local_rank = 1,
          .hosts = hosts,
          .mpi = true};
}

Job mpi_job() {
  Job job;
  job.cluster.transport = Transport::kMpi;
  return job;
}

std::string trouble(const Placement& placement, Job job) {
  const Status fits = fit_to(placement, {}, job);
  return fits ? "" : fits.error().message;
}

TEST(ClusterSeat, BetweenHostsTheTransportIsTcp) {
  Job job;
  const Placement placement{.launcher = LaunchedBy::kSlurm, .ranks = 4, .hosts = 2};
  ASSERT_TRUE(fit_to(placement, {}, job).ok());
  EXPECT_EQ(job.cluster.transport, Transport::kTcp);
  job.cluster.transport = Transport::kShm;
  EXPECT_NE(trouble(placement, job), "");
}

TEST(ClusterSeat, MpiStaysMpi) {
  Job job = mpi_job();
  ASSERT_TRUE(fit_to(mpi_ranks(4, 1), {}, job).ok());
  EXPECT_EQ(job.cluster.transport, Transport::kMpi);
}

TEST(ClusterSeat, MpiNeedsALauncherThatSupportsIt) {
  EXPECT_THAT(trouble({}, mpi_job()),
              AllOf(mentions("--transport", "mpi", "mpirun"), Not(mentions("PMIX_RANK"))));
  EXPECT_THAT(trouble({.launcher = LaunchedBy::kSlurm, .ranks = 4}, mpi_job()),
              mentions("--transport", "mpi", "--mpi=pmix", "PMIX_RANK"));
}

TEST(ClusterSeat, MpiBetweenHostsIsOnlyForTrustedNetworks) {
  Job job = mpi_job();
  EXPECT_THAT(trouble(mpi_ranks(4, 2), job), mentions("--transport", "mpi", "--insecure"));
  job.cluster.tls = "keys";
  EXPECT_THAT(trouble(mpi_ranks(4, 2), job), mentions("--transport", "mpi", "--tls"));
  job.cluster.insecure = true;
  EXPECT_EQ(trouble(mpi_ranks(4, 2), job), "");
}

TEST(ClusterSeat, WithMpiRanksAreShardsOrWorkers) {
  const auto job = defaults_with_mpi(mpi_ranks(8, 2), 2);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job.value().cluster.shards, 2u);
  EXPECT_EQ(job.value().cluster.workers, 6u);
  const auto none_left = defaults_with_mpi(mpi_ranks(2, 2), 2);
  ASSERT_FALSE(none_left.ok());
  EXPECT_THAT(none_left.error(), is_error(ErrorKind::kInvalidInput, "--shards 1", 2));
  Job split = mpi_job();
  split.cluster.shards = 2;
  EXPECT_EQ(duties_in(mpi_ranks(8, 2), split),
            (Duties{.coordinator = false, .shards = {}, .workers = {0}}));
}

}  // namespace
}  // namespace drover
