#include "launch/cluster_placement.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "wire/limits.h"

namespace drover {
namespace {

// The port of a launch is computed from its number, so that two jobs on one host use different
// ports. They are below Linux's range of ephemeral ports.
constexpr uint16_t kFirstPort = 20'000;
constexpr uint64_t kPorts = 10'000;
// torchrun's own store listens on MASTER_PORT. With its default, 29500, this makes kClusterPort.
constexpr uint16_t kBesideMasterPort = 100;
// Steps that no srun made, such as the shell of an interactive job, have numbers from here on.
constexpr uint64_t kFirstSpecialStep = 0xffff'fff0;

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, number);
  return trouble == std::errc{} && stop == end && !text.empty();
}

// Reads the variables of one launcher, and keeps the first error.
class Variables {
 public:
  Variables(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  bool has(const std::string& name) const { return environment_.contains(name); }

  std::string text(const std::string& name) {
    const auto found = environment_.find(name);
    if (found != environment_.end() && !found->second.empty()) return found->second;
    complain(name + " is not set");
    return {};
  }
  std::string text_or(const std::string& name, const std::string& otherwise) const {
    const auto found = environment_.find(name);
    return found == environment_.end() || found->second.empty() ? otherwise : found->second;
  }

  // From 0 to `limit` - 1.
  uint32_t number(const std::string& name, uint32_t limit) {
    uint32_t number = 0;
    const std::string given = text(name);
    if (trouble_.empty() && (!read_number(given, number) || number >= limit))
      complain(name + " is '" + given + "', not a number below " + std::to_string(limit));
    return number;
  }
  uint32_t number_or(const std::string& name, uint32_t limit, uint32_t otherwise) {
    return has(name) ? number(name, limit) : otherwise;
  }

  void complain(const std::string& what) {
    if (trouble_.empty()) trouble_ = what;
  }
  Status status() const {
    if (trouble_.empty()) return done();
    return invalid_input(
        "cannot determine this process's part of the run: it seems to be started by " + launcher_ +
        ", but " + trouble_ +
        ". Give --role, --rank and --coordinator, or unset the variables to run on this machine "
        "alone.");
  }

 private:
  const Environment& environment_;
  const std::string launcher_;
  std::string trouble_;
};

// A hash that is the same on all hosts, which std::hash need not be.
uint64_t number_from(std::string_view text) {
  uint64_t number = 0;
  for (const char letter : text) number = number * 31 + static_cast<unsigned char>(letter);
  return number;
}

uint16_t port_from(uint64_t number) { return static_cast<uint16_t>(kFirstPort + number % kPorts); }

Result<Placement> by_slurm(const Environment& environment) {
  Variables variables(environment, "srun");
  Placement placement{.launcher = LaunchedBy::kSlurm};
  placement.ranks = variables.number(
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
      kWorkersMax + 1);
  placement.rank = variables.number("SLURM_PROCID", std::max(1u, placement.ranks));
  placement.local_rank = variables.number("SLURM_LOCALID", std::max(1u, placement.ranks));
  placement.hosts = variables.number(
      variables.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES",
      kWorkersMax + 1);
  placement.host = variables.number("SLURM_NODEID", std::max(1u, placement.hosts));
  uint64_t job = 0;
  uint64_t step = 0;
  if (!read_number(variables.text("SLURM_JOB_ID"), job) ||
      !read_number(variables.text("SLURM_STEP_ID"), step))
    variables.complain("SLURM_JOB_ID and SLURM_STEP_ID are not numbers");
  const auto hosts = expand_hosts(variables.text(
      variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST"));
  if (!hosts)
    variables.complain(hosts.error().message);
  else if (hosts.value().size() != placement.hosts)
    variables.complain("the list of nodes has " + std::to_string(hosts.value().size()) +
                       " and SLURM_STEP_NUM_NODES says " + std::to_string(placement.hosts));
  if (const Status status = variables.status(); !status) return status.error();
  placement.coordinator = hosts.value().front();
  placement.port = port_from(job + 977 * step);
  placement.launch = "slurm-" + std::to_string(job) + "." + std::to_string(step);
  return placement;
}

// Open MPI's environment does not say which host a rank is on, or where rank 0 is.
Result<Placement> by_open_mpi(const Environment& environment) {
  Variables variables(environment, "mpirun");
  Placement placement{.launcher = LaunchedBy::kOpenMpi};
  placement.ranks = variables.number("OMPI_COMM_WORLD_SIZE", kWorkersMax + 1);
  placement.rank = variables.number("OMPI_COMM_WORLD_RANK", std::max(1u, placement.ranks));
  placement.local_rank =
      variables.number("OMPI_COMM_WORLD_LOCAL_RANK", std::max(1u, placement.ranks));
  const uint32_t here = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", placement.ranks + 1);
  const std::string name =
      variables.text_or("PMIX_NAMESPACE", variables.text_or("OMPI_MCA_ess_base_jobid", ""));
  if (name.empty()) variables.complain("PMIX_NAMESPACE is not set");
  if (const Status status = variables.status(); !status) return status.error();
  placement.hosts = std::max(
      1u, variables.number_or("OMPI_MCA_orte_num_nodes", kWorkersMax + 1, placement.ranks));
  placement.hosts = std::min(placement.hosts, placement.ranks);
  if (here == placement.ranks) {
    placement.hosts = 1;
    placement.host = 0;
  } else {
    placement.hosts = std::max(2u, placement.hosts);
  }
  uint64_t number = 0;
  placement.port = port_from(read_number(name, number) ? number : number_from(name));
  placement.launch = "mpi-" + name;
  return placement;
}

Result<Placement> by_torchrun(const Environment& environment) {
  Variables variables(environment, "torchrun");
  Placement placement{.launcher = LaunchedBy::kTorchrun};
  placement.ranks = variables.number("WORLD_SIZE", kWorkersMax + 1);
  placement.rank = variables.number("RANK", std::max(1u, placement.ranks));
  placement.local_rank = variables.number("LOCAL_RANK", std::max(1u, placement.ranks));
  placement.coordinator = variables.text("MASTER_ADDR");
  const uint32_t port = variables.number("MASTER_PORT", 65'536 - kBesideMasterPort);
  if (variables.has("GROUP_WORLD_SIZE")) {
    placement.hosts = std::max(1u, variables.number("GROUP_WORLD_SIZE", kWorkersMax + 1));
    placement.host = variables.number("GROUP_RANK", placement.hosts);
  } else if (variables.number("LOCAL_WORLD_SIZE", kWorkersMax + 1) == placement.ranks) {
    placement.host = 0;
  } else {
    placement.hosts = placement.ranks;  // at most
  }
  if (const Status status = variables.status(); !status) return status.error();
  placement.port = static_cast<uint16_t>(port + kBesideMasterPort);
  placement.launch = "torchrun-" + placement.coordinator + "-" + std::to_string(port);
  return placement;
}

// A Job with completionMode: Indexed sets each pod's number. Its manifest must set the number of
// pods and the address of the first one.
Result<Placement> by_kubernetes(const Environment& environment) {
  Variables variables(environment, "Kubernetes");
  Placement placement{.launcher = LaunchedBy::kKubernetes};
  placement.ranks = variables.number("DROVER_RANKS", kWorkersMax + 1);
  placement.rank = variables.number("JOB_COMPLETION_INDEX", std::max(1u, placement.ranks));
  placement.coordinator = variables.text("DROVER_COORDINATOR");
  if (const Status status = variables.status(); !status) return status.error();
  placement.hosts = placement.ranks;
  placement.host = placement.rank;
  placement.port = kClusterPort;
  return placement;
}

Result<Placement> by_flags(const PlacementFlags& flags) {
  constexpr std::array<std::pair<std::string_view, Duty>, 3> kRoles = {
      {{"coordinator", Duty::kCoordinator}, {"shard", Duty::kShard}, {"worker", Duty::kWorker}}};
  Placement placement{.launcher = LaunchedBy::kFlags};
  for (const auto& [name, role] : kRoles) {
    if (flags.role == name) placement.only = role;
  }
  if (!placement.only)
    return invalid_input("--role must be coordinator, shard or worker, not '" + flags.role + "'");
  const bool head = placement.only == Duty::kCoordinator;
  if (head && flags.rank) return invalid_input("--rank: there is only one coordinator");
  if (!head && !flags.rank)
    return invalid_input("which " + flags.role + " of the run? Add --rank 0, --rank 1, ...");
  if (!head && flags.coordinator.empty())
    return invalid_input("where is the coordinator? Add --coordinator HOST:PORT");
  placement.rank = flags.rank.value_or(0);
  placement.hosts = 2;  // or more; with these flags processes are on several hosts
  placement.port = kClusterPort;
  return placement;
}

bool made_by_srun(const Environment& environment) {
  const auto step = environment.find("SLURM_STEP_ID");
  uint64_t number = 0;
  // A batch script and the shell of salloc are in an allocation, but are not tasks of an srun.
  return step != environment.end() &&
         (!read_number(step->second, number) || number < kFirstSpecialStep);
}

Result<Placement> by_launcher(const Environment& environment) {
  const auto has = [&](const char* name) { return environment.contains(name); };
  // The innermost first: mpirun starts its daemons by srun, and torchrun may be started by either.
  if (has("TORCHELASTIC_RUN_ID")) return by_torchrun(environment);
  if (has("OMPI_COMM_WORLD_SIZE") || has("OMPI_COMM_WORLD_RANK")) return by_open_mpi(environment);
  if (made_by_srun(environment)) return by_slurm(environment);
  if (has("DROVER_RANKS")) return by_kubernetes(environment);
  if (has("PMIX_RANK")) {
    return invalid_input(
        "cannot determine this process's part of the run: PMIX_RANK is set, but not the number of "
        "ranks. Start it with srun or with Open MPI's mpirun, or give --role, --rank and "
        "--coordinator.");
  }
  const int set = int{has("RANK")} + int{has("WORLD_SIZE")} + int{has("MASTER_ADDR")};
  // A single one of them may belong to something else.
  if (set >= 2) return by_torchrun(environment);
  return Placement{};
}

// Scripts for PyTorch often set RANK and WORLD_SIZE by hand, from what srun says.
Status check_agreement(const Environment& environment, const Placement& placement) {
  if (placement.launcher != LaunchedBy::kSlurm && placement.launcher != LaunchedBy::kOpenMpi)
    return done();
  const std::pair<std::string, uint32_t> pairs[] = {{"RANK", placement.rank},
                                                    {"WORLD_SIZE", placement.ranks}};
  for (const auto& [name, ours] : pairs) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second == std::to_string(ours)) continue;
    return invalid_input("cannot determine this process's part of the run: " + name + " is " +
                         found->second + ", but " + std::string(name_of(placement.launcher)) +
                         " says " + std::to_string(ours) + ". Unset " + name +
                         ", or give --role, --rank and --coordinator.");
  }
  return done();
}

// "HOST:PORT" or "HOST", "[::1]:PORT" or "::1".
Status apply_coordinator(const std::string& text, Placement& placement) {
  const size_t colon = text.rfind(':');
  const bool bare = colon == std::string::npos ||
                    (text.front() != '[' && text.find(':') != colon) || text.back() == ']';
  if (!bare && !read_number(std::string_view(text).substr(colon + 1), placement.port))
    return invalid_input("the coordinator's address must be HOST:PORT such as node1:29600, not '" +
                         text + "'");
  std::string host = bare ? text : text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty()) return invalid_input("the coordinator's address '" + text + "' has no host");
  placement.coordinator = host;
  return done();
}

}  // namespace

std::string_view name_of(LaunchedBy launcher) {
  constexpr std::array<std::string_view, 6> kNames = {"nothing",  "srun",       "mpirun",
                                                      "torchrun", "Kubernetes", "flags"};
  return kNames[static_cast<size_t>(launcher)];
}

Result<Placement> find_placement(const Environment& environment, const PlacementFlags& flags) {
  if (flags.rank && flags.role.empty())
    return invalid_input("--rank needs --role: which shard, or which worker?");
  auto found = flags.role.empty() ? by_launcher(environment) : by_flags(flags);
  if (!found) return found;
  Placement& placement = found.value();
  if (const Status agree = check_agreement(environment, placement); !agree) return agree.error();
  if (placement.ranks == 0)
    return invalid_input(std::string(name_of(placement.launcher)) +
                         " says that it has started 0 processes");
  if (!placement.of_many()) {
    if (!flags.coordinator.empty())
      return invalid_input(
          "--coordinator is for processes of a run on several hosts. Add --role shard or --role "
          "worker, or start with srun or mpirun; to join a run that is under way: drover worker");
    placement = Placement{};
  }
  const std::string address =
      flags.coordinator.empty() ? std::exchange(placement.coordinator, "") : flags.coordinator;
  if (!address.empty()) {
    if (const Status status = apply_coordinator(address, placement); !status) return status.error();
  }
  if (flags.port) placement.port = *flags.port;
  const auto mpi_rank = environment.find("PMIX_RANK");
  placement.mpi =
      (placement.launcher == LaunchedBy::kSlurm || placement.launcher == LaunchedBy::kOpenMpi) &&
      mpi_rank != environment.end() && mpi_rank->second == std::to_string(placement.rank);
  std::replace(placement.launch.begin(), placement.launch.end(), '/', '-');  // it names a file
  return found;
}

Duties duties_of(const Placement& placement, uint32_t workers, uint32_t shards) {
  Duties duties;
  if (placement.only) {
    duties.coordinator = placement.only == Duty::kCoordinator;
    if (placement.only == Duty::kShard) {
      duties.shards = {placement.rank};
      duties.standbys = {(placement.rank + shards - 1) % shards};
    }
    if (placement.only == Duty::kWorker) duties.workers = {placement.rank};
    return duties;
  }
  duties.coordinator = placement.rank == 0;
  for (WorkerId worker = placement.rank; worker < workers; worker += placement.ranks)
    duties.workers.push_back(worker);
  for (ShardId shard = 0; shard < shards; ++shard) {
    // The number of its host, or, if hosts are not known, of its rank. The standby is at the next.
    const auto place =
        static_cast<uint32_t>(placement.host ? shard : uint64_t{shard} * placement.ranks / shards);
    const uint32_t places = placement.host ? placement.hosts : placement.ranks;
    const uint32_t ours = placement.host.value_or(placement.rank);
    if (placement.host && placement.local_rank != 0) continue;
    if (place % places == ours) duties.shards.push_back(shard);
    if ((place + 1) % places == ours) duties.standbys.push_back(shard);
  }
  return duties;
}

Duties duties_with_mpi(const Placement& placement, uint32_t shards) {
  const auto rank_of = [&](ShardId shard) {
    return static_cast<uint32_t>(uint64_t{shard} * placement.ranks / shards);
  };
  ShardId before = 0;  // shards of lower ranks
  while (before < shards && rank_of(before) < placement.rank) ++before;
  const bool is_shard = before < shards && rank_of(before) == placement.rank;
  Duties duties;
  duties.coordinator = placement.rank == 0;
  if (is_shard)
    duties.shards = {before};
  else
    duties.workers = {placement.rank - before};
  return duties;
}

Environment process_environment() {
  Environment environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace drover
