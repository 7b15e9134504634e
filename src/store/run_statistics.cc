#include "store/run_statistics.h"

#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

// The row of a query that always has exactly one.
template <typename T>
Result<T> only(Result<std::vector<T>> rows) {
  if (!rows) return rows.error();
  DROVER_CHECK(rows.value().size() == 1);
  return std::move(rows.value().front());
}

constexpr std::string_view kPartialPulls = R"sql(
  WITH spread AS (
    SELECT min(contributors) AS least, max(contributors) AS most FROM block_contributors
    GROUP BY step
  )
  SELECT (SELECT avg(fresh_mean) FROM steps),
         (SELECT coalesce(min(fresh_min), 1.0) FROM steps),
         (SELECT coalesce(sum(fresh_min < 1.0), 0) FROM steps),
         (SELECT coalesce(max(staleness_max), 0) FROM steps),
         (SELECT coalesce(sum(least < most), 0) FROM spread),
         (SELECT coalesce(sum(contributors * blocks) * 1.0 / sum(blocks), 0.0)
          FROM block_contributors),
         (SELECT coalesce(min(least), 0) FROM spread),
         (SELECT coalesce(max(most), 0) FROM spread)
)sql";

// Sorted in SQL and ranked here: ranking with window functions takes three times as long.
constexpr std::string_view kSortedArrivals =
    "SELECT worker, run_time_ns, censored, late FROM arrivals ORDER BY worker, run_time_ns";

constexpr std::string_view kWaitedFor =
    "SELECT last_worker, count(*) FROM steps GROUP BY last_worker";

struct RunTime {
  Duration value;
  bool censored;
};

// Adds the statistics of one worker, whose run-times are in ascending order.
void set_median(WorkerStatistics& worker, const std::vector<RunTime>& sorted) {
  worker.median_run_time = sorted[(sorted.size() - 1) / 2].value;
  for (const RunTime& run_time : sorted) {
    if (run_time.value > worker.median_run_time) break;
    if (run_time.censored) worker.median_exact = false;
  }
}

}  // namespace

Result<RunTotals> totals_of(const Database& database) {
  return only(database.query(
      R"sql(
        SELECT count(*), coalesce(sum(samples), 0), coalesce(sum(contributors), 0),
               coalesce(sum(late), 0), coalesce(sum(refused), 0),
               coalesce(nullif((SELECT count(*) FROM peers WHERE name LIKE 'worker %'), 0),
                        (SELECT count(DISTINCT worker) FROM arrivals)),
               (SELECT count(*) FROM peers WHERE name LIKE 'shard %'),
               coalesce(max(at_ns + elapsed_ns), 0), coalesce(min(at_ns), 0)
        FROM steps
      )sql",
      [](const Statement& row) {
        return RunTotals{.steps = row.count(0),
                         .samples = row.count(1),
                         .gradients_used = row.count(2),
                         .gradients_late = row.count(3),
                         .gradients_refused = row.count(4),
                         .workers = row.small(5),
                         .shards = row.small(6),
                         .last_step_end = row.duration(7),
                         .first_step_start = row.duration(8)};
      }));
}

Result<std::vector<WorkerStatistics>> workers_of(const Database& database) {
  std::vector<WorkerStatistics> workers;
  std::vector<RunTime> run_times;  // of one worker at a time
  Status status = database.for_each(kSortedArrivals, [&](const Statement& row) {
    const WorkerId worker = row.small(0);
    if (workers.empty() || workers.back().worker != worker) {
      if (!workers.empty()) set_median(workers.back(), run_times);
      run_times.clear();
      workers.push_back({});
      workers.back().worker = worker;
    }
    run_times.push_back({row.duration(1), row.integer(2) != 0});
    workers.back().steps += 1;
    workers.back().censored += row.count(2);
    workers.back().late += row.count(3);
  });
  if (!status) return status.error();
  if (!workers.empty()) set_median(workers.back(), run_times);
  status = database.for_each(kWaitedFor, [&](const Statement& row) {
    for (WorkerStatistics& worker : workers) {
      if (worker.worker == row.small(0)) worker.last = row.count(1);
    }
  });
  if (!status) return status.error();
  return workers;
}

Result<PartialPullStatistics> partial_pulls_of(const Database& database) {
  return only(database.query(kPartialPulls, [](const Statement& row) {
    PartialPullStatistics pulls{.fresh_mean = {},
                                .fresh_min = row.real(1),
                                .stale_steps = row.count(2),
                                .staleness_max = row.count(3),
                                .uneven_steps = row.count(4),
                                .contributors_mean = row.real(5),
                                .contributors_min = row.small(6),
                                .contributors_max = row.small(7)};
    if (const double fresh = row.real(0); !std::isnan(fresh)) pulls.fresh_mean = fresh;
    return pulls;
  }));
}

Result<std::vector<OutlierStatistics>> outliers_of(const Database& database) {
  const auto tables = only(database.query(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'outliers'",
      [](const Statement& row) { return row.count(0); }));
  if (!tables) return tables.error();
  if (tables.value() == 0) return std::vector<OutlierStatistics>{};
  return database.query(
      "SELECT worker, count(*), max(ratio) FROM outliers GROUP BY worker ORDER BY count(*) DESC, "
      "worker",
      [](const Statement& row) {
        return OutlierStatistics{
            .worker = row.small(0), .steps = row.count(1), .ratio_max = row.real(2)};
      });
}

}  // namespace drover
