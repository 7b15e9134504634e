// Placements from recorded environments of real launchers.
#include "launch/cluster_placement.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/test_text.h"

namespace drover {
namespace {

// Recorded: `srun -N2 -n3` of Slurm 22.05, the third task.
Environment srun_environment() {
  return {{"SLURMD_NODENAME", "node2"},
          {"SLURM_GTIDS", "2"},
          {"SLURM_JOB_ID", "1"},
          {"SLURM_JOB_NODELIST", "node[1-2]"},
          {"SLURM_JOB_NUM_NODES", "2"},
          {"SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NNODES", "2"},
          {"SLURM_NODEID", "1"},
          {"SLURM_NPROCS", "3"},
          {"SLURM_NTASKS", "3"},
          {"SLURM_PROCID", "2"},
          {"SLURM_STEPID", "0"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NODELIST", "node[1-2]"},
          {"SLURM_STEP_NUM_NODES", "2"},
          {"SLURM_STEP_NUM_TASKS", "3"},
          {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
          {"SLURM_TASKS_PER_NODE", "2,1"},
          {"SLURM_TOPOLOGY_ADDR", "node2"}};
}

// Recorded: the script of `sbatch -N2 -n3`.
Environment sbatch_environment() {
  return {{"SLURMD_NODENAME", "node1"},   {"SLURM_GTIDS", "0"},
          {"SLURM_JOB_ID", "2"},          {"SLURM_JOB_NODELIST", "node[1-2]"},
          {"SLURM_LOCALID", "0"},         {"SLURM_NNODES", "2"},
          {"SLURM_NODEID", "0"},          {"SLURM_NPROCS", "3"},
          {"SLURM_NTASKS", "3"},          {"SLURM_PROCID", "0"},
          {"SLURM_TASKS_PER_NODE", "2,1"}};
}

// Recorded: `mpirun -np 2` of Open MPI 4.1.4 on one host, the second process.
Environment mpirun_environment() {
  return {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"OMPI_COMM_WORLD_NODE_RANK", "1"},
          {"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_MCA_ess_base_jobid", "440467457"},
          {"OMPI_MCA_orte_num_nodes", "1"},
          {"OMPI_UNIVERSE_SIZE", "2"},
          {"PMIX_HOSTNAME", "vm"},
          {"PMIX_ID", "440467457.1"},
          {"PMIX_NAMESPACE", "440467457"},
          {"PMIX_RANK", "1"}};
}

// Recorded: `mpirun -np 3` in a job of Slurm on two nodes, the third process. It was started by a
// daemon that is itself task 1 of 2 of a step.
Environment mpirun_in_slurm() {
  Environment environment = mpirun_environment();
  environment["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  environment["OMPI_COMM_WORLD_RANK"] = "2";
  environment["OMPI_COMM_WORLD_SIZE"] = "3";
  environment["OMPI_MCA_orte_num_nodes"] = "2";
  environment["PMIX_NAMESPACE"] = "377749505";
  environment["PMIX_RANK"] = "2";
  for (const auto& [name, value] : Environment{{"SLURM_JOB_ID", "2"},
                                               {"SLURM_LOCALID", "0"},
                                               {"SLURM_NODEID", "1"},
                                               {"SLURM_NTASKS", "2"},
                                               {"SLURM_PROCID", "1"},
                                               {"SLURM_STEP_ID", "0"},
                                               {"SLURM_STEP_NODELIST", "node[1-2]"},
                                               {"SLURM_STEP_NUM_NODES", "2"},
                                               {"SLURM_STEP_NUM_TASKS", "2"}})
    environment[name] = value;
  return environment;
}

// The variables that torchrun of PyTorch 1.13 sets, with values of
// `torchrun --nnodes 2 --nproc_per_node 2`.
Environment torchrun_environment() {
  return {{"GROUP_RANK", "1"},
          {"GROUP_WORLD_SIZE", "2"},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "10.0.0.1"},
          {"MASTER_PORT", "29500"},
          {"RANK", "2"},
          {"TORCHELASTIC_RUN_ID", "abc"},
          {"WORLD_SIZE", "4"}};
}

Environment kubernetes_environment() {
  return {{"DROVER_COORDINATOR", "drover-0.drover:29600"},
          {"DROVER_RANKS", "3"},
          {"JOB_COMPLETION_INDEX", "2"}};
}

Placement found(const Environment& environment, const PlacementFlags& flags = {}) {
  const auto placement = find_placement(environment, flags);
  EXPECT_TRUE(placement.ok()) << (placement.ok() ? "" : placement.error().message);
  return placement.ok() ? placement.value() : Placement{};
}

std::string trouble(const Environment& environment, const PlacementFlags& flags = {}) {
  const auto placement = find_placement(environment, flags);
  return placement.ok() ? "" : placement.error().message;
}

TEST(Placement, WithoutALauncherIsASingleProcess) {
  EXPECT_EQ(found({}), Placement{});
  EXPECT_FALSE(found({{"HOME", "/home/me"}, {"RANK", "3"}}).of_many());
}

TEST(Placement, OfSrun) {
  const Placement placement = found(srun_environment());
  EXPECT_EQ(placement.launcher, LaunchedBy::kSlurm);
  EXPECT_EQ(placement.rank, 2u);
  EXPECT_EQ(placement.ranks, 3u);
  EXPECT_EQ(placement.local_rank, 0u);
  EXPECT_EQ(placement.host, 1u);
  EXPECT_EQ(placement.hosts, 2u);
  EXPECT_EQ(placement.coordinator, "node1");
  EXPECT_EQ(placement.launch, "slurm-1.0");
  EXPECT_TRUE(placement.of_many());
}

TEST(Placement, TwoJobsOnANodeUseTwoPorts) {
  Environment other = srun_environment();
  other["SLURM_JOB_ID"] = "2";
  EXPECT_NE(found(srun_environment()).port, found(other).port);
  other = srun_environment();
  other["SLURM_STEP_ID"] = "1";
  EXPECT_NE(found(srun_environment()).port, found(other).port);
}

TEST(Placement, AnAllocationWithoutSrunIsNotALaunch) {
  EXPECT_FALSE(found(sbatch_environment()).of_many());
  Environment salloc = sbatch_environment();
  for (const char* name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"}) salloc.erase(name);
  EXPECT_FALSE(found(salloc).of_many());
  // The shell of an interactive job is a special step.
  Environment shell = sbatch_environment();
  shell["SLURM_STEP_ID"] = "4294967290";
  EXPECT_FALSE(found(shell).of_many());
}

TEST(Placement, OfMpirun) {
  const Placement placement = found(mpirun_environment());
  EXPECT_EQ(placement.launcher, LaunchedBy::kOpenMpi);
  EXPECT_EQ(placement.rank, 1u);
  EXPECT_EQ(placement.ranks, 2u);
  EXPECT_EQ(placement.local_rank, 1u);
  EXPECT_EQ(placement.hosts, 1u);
  EXPECT_EQ(placement.host, 0u);
  EXPECT_EQ(placement.launch, "mpi-440467457");
}

TEST(Placement, MpirunInAJobOfSlurmTakesPrecedence) {
  const Placement placement = found(mpirun_in_slurm());
  EXPECT_EQ(placement.launcher, LaunchedBy::kOpenMpi);
  EXPECT_EQ(placement.rank, 2u);
  EXPECT_EQ(placement.ranks, 3u);
  EXPECT_EQ(placement.hosts, 2u);
  EXPECT_EQ(placement.host, std::nullopt);
  EXPECT_EQ(placement.coordinator, "");
}

TEST(Placement, OfTorchrun) {
  const Placement placement = found(torchrun_environment());
  EXPECT_EQ(placement.launcher, LaunchedBy::kTorchrun);
  EXPECT_EQ(placement.rank, 2u);
  EXPECT_EQ(placement.ranks, 4u);
  EXPECT_EQ(placement.host, 1u);
  EXPECT_EQ(placement.hosts, 2u);
  EXPECT_EQ(placement.coordinator, "10.0.0.1");
  EXPECT_EQ(placement.port, kClusterPort);  // MASTER_PORT is taken
  EXPECT_EQ(placement.launch, "torchrun-10.0.0.1-29500");
}

TEST(Placement, OfKubernetes) {
  const Placement placement = found(kubernetes_environment());
  EXPECT_EQ(placement.launcher, LaunchedBy::kKubernetes);
  EXPECT_EQ(placement.rank, 2u);
  EXPECT_EQ(placement.ranks, 3u);
  EXPECT_EQ(placement.host, 2u);
  EXPECT_EQ(placement.coordinator, "drover-0.drover");
  EXPECT_EQ(placement.port, 29600);
  // An indexed job whose pods are independent trainings.
  EXPECT_FALSE(found({{"JOB_COMPLETION_INDEX", "2"}}).of_many());
}

TEST(Placement, OneRankIsASingleProcess) {
  Environment environment = mpirun_environment();
  environment["OMPI_COMM_WORLD_SIZE"] = environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  environment["OMPI_COMM_WORLD_RANK"] = environment["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  EXPECT_FALSE(found(environment).of_many());
}

TEST(Placement, OfFlags) {
  const Placement worker =
      found(srun_environment(), {.role = "worker", .rank = 5, .coordinator = "[::1]:7000"});
  EXPECT_EQ(worker.only, Duty::kWorker);
  EXPECT_EQ(worker.rank, 5u);
  EXPECT_EQ(worker.coordinator, "::1");
  EXPECT_EQ(worker.port, 7000);
  const Placement head = found({}, {.role = "coordinator", .port = 1234});
  EXPECT_EQ(head.only, Duty::kCoordinator);
  EXPECT_EQ(head.port, 1234);
  EXPECT_EQ(found({}, {.role = "shard", .rank = 0, .coordinator = "node1"}).port, kClusterPort);
}

TEST(Placement, ACoordinatorFlagTakesPrecedence) {
  const Placement placement = found(srun_environment(), {.coordinator = "10.1.1.1:99", .port = 7});
  EXPECT_EQ(placement.coordinator, "10.1.1.1");
  EXPECT_EQ(placement.port, 7);
}

TEST(Placement, IncompleteEnvironmentsAreErrorsThatNameTheMissingVariable) {
  const std::map<std::string, Environment> cases = {
      {"SLURM_PROCID", srun_environment()},
      {"SLURM_JOB_ID", srun_environment()},
      {"SLURM_NODEID", srun_environment()},
      {"OMPI_COMM_WORLD_RANK", mpirun_environment()},
      {"OMPI_COMM_WORLD_SIZE", mpirun_environment()},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", mpirun_environment()},
      {"RANK", torchrun_environment()},
      {"WORLD_SIZE", torchrun_environment()},
      {"MASTER_ADDR", torchrun_environment()},
      {"MASTER_PORT", torchrun_environment()},
      {"JOB_COMPLETION_INDEX", kubernetes_environment()},
      {"DROVER_COORDINATOR", kubernetes_environment()}};
  for (const auto& [missing, whole] : cases) {
    Environment half = whole;
    half.erase(missing);
    EXPECT_THAT(trouble(half), mentions(missing));
  }
  EXPECT_NE(trouble({{"PMIX_RANK", "1"}}), "");
  EXPECT_NE(trouble({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), "");
}

TEST(Placement, ContradictionsAreErrors) {
  Environment environment = srun_environment();
  environment["RANK"] = "2";
  environment["WORLD_SIZE"] = "3";
  EXPECT_EQ(trouble(environment), "");
  environment["RANK"] = "0";
  EXPECT_THAT(trouble(environment), mentions("RANK", 0, "srun", 2));
  environment = srun_environment();
  environment["SLURM_PROCID"] = "3";  // of 3
  EXPECT_THAT(trouble(environment), mentions("SLURM_PROCID", 3));
  environment = srun_environment();
  environment["SLURM_STEP_NUM_NODES"] = "5";
  EXPECT_NE(trouble(environment), "");
}

TEST(Placement, InvalidFlagsAreErrors) {
  EXPECT_NE(trouble({}, {.role = "boss"}), "");
  EXPECT_NE(trouble({}, {.role = "worker", .coordinator = "a:1"}), "");
  EXPECT_NE(trouble({}, {.role = "worker", .rank = 1}), "");
  EXPECT_NE(trouble({}, {.role = "coordinator", .rank = 1}), "");
  EXPECT_NE(trouble({}, {.rank = 1}), "");
  EXPECT_NE(trouble({}, {.coordinator = "a:1"}), "");
  EXPECT_NE(trouble({}, {.role = "worker", .rank = 1, .coordinator = "a:port"}), "");
  EXPECT_NE(trouble({}, {.role = "worker", .rank = 1, .coordinator = ":1"}), "");
}

TEST(Hosts, InSlurmsNotation) {
  const auto hosts = [](const char* list) { return expand_hosts(list).value(); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(hosts("node1"), Names{"node1"});
  EXPECT_EQ(hosts("node[01-03,7],gpu1"), (Names{"node01", "node02", "node03", "node7", "gpu1"}));
  EXPECT_EQ(hosts("r[1-2]n[1,3].lan"), (Names{"r1n1.lan", "r1n3.lan", "r2n1.lan", "r2n3.lan"}));
  EXPECT_EQ(hosts("a[08-11]"), (Names{"a08", "a09", "a10", "a11"}));
  for (const char* bad :
       {"", "a,", "a[1-2", "a[2-1]", "a[x]", "a[]", "a[1-]", "a[0-99999999]", "a[1-9999][1-9999]"})
    EXPECT_FALSE(expand_hosts(bad).ok()) << bad;
}

// For all numbers of ranks, workers and shards: each process is started once, by a rank that
// exists.
void expect_everything_once(const std::vector<Placement>& ranks, uint32_t workers,
                            uint32_t shards) {
  std::multiset<WorkerId> all_workers;
  std::multiset<ShardId> all_shards;
  std::multiset<ShardId> all_standbys;
  int heads = 0;
  for (const Placement& placement : ranks) {
    const Duties duties = duties_of(placement, workers, shards);
    heads += duties.coordinator ? 1 : 0;
    all_workers.insert(duties.workers.begin(), duties.workers.end());
    all_shards.insert(duties.shards.begin(), duties.shards.end());
    all_standbys.insert(duties.standbys.begin(), duties.standbys.end());
    for (const ShardId standby : duties.standbys) {
      EXPECT_TRUE(ranks.size() == 1 || placement.hosts == 1 ||
                  std::count(duties.shards.begin(), duties.shards.end(), standby) == 0)
          << "a shard and its standby would be lost together";
    }
  }
  EXPECT_EQ(heads, 1);
  ASSERT_EQ(all_workers.size(), workers);
  ASSERT_EQ(all_shards.size(), shards);
  EXPECT_EQ(all_standbys, all_shards);
  EXPECT_EQ(std::set<WorkerId>(all_workers.begin(), all_workers.end()).size(), workers);
  EXPECT_EQ(std::set<ShardId>(all_shards.begin(), all_shards.end()).size(), shards);
}

TEST(Duties, EveryProcessIsStartedOnce) {
  for (uint32_t hosts = 1; hosts <= 4; ++hosts) {
    for (uint32_t each = 1; each <= 3; ++each) {
      std::vector<Placement> known;
      std::vector<Placement> unknown;
      for (uint32_t rank = 0; rank < hosts * each; ++rank) {
        known.push_back({.rank = rank,
                         .ranks = hosts * each,
                         .local_rank = rank % each,
                         .host = rank / each,
                         .hosts = hosts});
        unknown.push_back(known.back());
        unknown.back().host = std::nullopt;
      }
      for (uint32_t workers = 1; workers <= 9; ++workers) {
        for (uint32_t shards = 1; shards <= 9; ++shards) {
          SCOPED_TRACE(std::to_string(hosts) + " hosts of " + std::to_string(each) + ", " +
                       std::to_string(workers) + " workers, " + std::to_string(shards));
          expect_everything_once(known, workers, shards);
          expect_everything_once(unknown, workers, shards);
        }
      }
    }
  }
}

TEST(Duties, ARankHasAWorkerAndTheFirstOfAHostHasItsShard) {
  const Placement second{.rank = 2, .ranks = 4, .local_rank = 0, .host = 1, .hosts = 2};
  EXPECT_EQ(duties_of(second, 4, 2),
            (Duties{.coordinator = false, .shards = {1}, .standbys = {0}, .workers = {2}}));
  const Placement third{.rank = 3, .ranks = 4, .local_rank = 1, .host = 1, .hosts = 2};
  EXPECT_EQ(duties_of(third, 4, 2),
            (Duties{.coordinator = false, .shards = {}, .standbys = {}, .workers = {3}}));
}

TEST(Duties, WithARoleThereIsOneDuty) {
  EXPECT_EQ(duties_of({.rank = 3, .only = Duty::kShard}, 4, 4),
            (Duties{.coordinator = false, .shards = {3}, .standbys = {2}, .workers = {}}));
  EXPECT_EQ(duties_of({.rank = 0, .only = Duty::kCoordinator}, 4, 4),
            (Duties{.coordinator = true, .shards = {}, .standbys = {}, .workers = {}}));
}

TEST(Placement, KnowsWhetherItsLauncherSupportsMpi) {
  EXPECT_TRUE(found(mpirun_environment()).mpi);
  EXPECT_TRUE(found(mpirun_in_slurm()).mpi);
  EXPECT_FALSE(found(srun_environment()).mpi);
  Environment environment = srun_environment();
  environment["PMIX_RANK"] = environment["SLURM_PROCID"];  // srun --mpi=pmix
  EXPECT_TRUE(found(environment).mpi);
  environment["PMIX_RANK"] = "77";  // of whatever has started srun
  EXPECT_FALSE(found(environment).mpi);
  EXPECT_FALSE(found(torchrun_environment()).mpi);
  EXPECT_FALSE(found({}).mpi);
}

TEST(Duties, WithMpiEveryRankIsOneShardOrWorker) {
  for (uint32_t ranks = 2; ranks <= 40; ++ranks) {
    for (uint32_t shards = 1; shards < ranks; ++shards) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(shards) + " shards");
      ShardId next_shard = 0;
      WorkerId next_worker = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const Duties duties = duties_with_mpi({.rank = rank, .ranks = ranks}, shards);
        ASSERT_EQ(duties.coordinator, rank == 0);
        ASSERT_EQ(duties.shards.size() + duties.workers.size(), 1u);
        for (const ShardId shard : duties.shards) ASSERT_EQ(shard, next_shard++);
        for (const WorkerId worker : duties.workers) ASSERT_EQ(worker, next_worker++);
      }
      EXPECT_EQ(next_shard, shards);
      EXPECT_EQ(next_worker, ranks - shards);
    }
  }
}

TEST(Duties, WithMpiEveryHostHasAShardIfAllHaveAsManyRanks) {
  for (const uint32_t rank : {0u, 4u, 8u})
    EXPECT_EQ(duties_with_mpi({.rank = rank, .ranks = 12}, 3).shards.size(), 1u) << rank;
}

}  // namespace
}  // namespace drover
