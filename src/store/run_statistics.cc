#include "store/run_statistics.h"

#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

// The one row of a query that always gives one.
template <typename T>
Result<T> only(Result<std::vector<T>> rows) {
  if (!rows) return rows.error();
  DROVER_CHECK(rows.value().size() == 1);
  return std::move(rows.value().front());
}

// Nearest-rank median and 90th percentile of step times and of overheads, median of closings, and
// how long decisions were waited for; NULL without rows.
constexpr std::string_view kStepTimes = R"sql(
  WITH overhead AS (
    SELECT max(0, s.elapsed_ns - max(a.compute_ns)) AS value
    FROM steps s JOIN arrivals a ON a.step = s.step
    WHERE a.censored = 0 AND a.late = 0
    GROUP BY s.step HAVING max(a.compute_ns) > 0
  ), ranked AS (
    SELECT value, row_number() OVER (ORDER BY value) AS place, count(*) OVER () AS n FROM overhead
  ), ranked_steps AS (
    SELECT elapsed_ns AS value, row_number() OVER (ORDER BY elapsed_ns) AS place,
           count(*) OVER () AS n
    FROM steps
  ), ranked_closings AS (
    SELECT closing_ns AS value, row_number() OVER (ORDER BY closing_ns) AS place,
           count(*) OVER () AS n
    FROM steps
  )
  SELECT (SELECT value FROM ranked_steps WHERE place = (n + 1) / 2),
         (SELECT value FROM ranked_steps WHERE place = (n * 9 + 9) / 10),
         (SELECT value FROM ranked WHERE place = (n + 1) / 2),
         (SELECT value FROM ranked WHERE place = (n * 9 + 9) / 10),
         (SELECT value FROM ranked_closings WHERE place = (n + 1) / 2),
         (SELECT max(undecided_ns) FROM steps),
         (SELECT coalesce(avg(undecided_ns > 0), 0.0) FROM steps)
)sql";

// Nearest-rank median; NULL without rows.
constexpr std::string_view kWaste = R"sql(
  WITH ranked AS (
    SELECT restart_ns AS value, row_number() OVER (ORDER BY restart_ns) AS place,
           count(*) OVER () AS n
    FROM abandoned
  )
  SELECT (SELECT count(*) FROM abandoned),
         (SELECT value FROM ranked WHERE place = (n + 1) / 2),
         (SELECT coalesce(sum(wasted_ns), 0) FROM abandoned) +
           (SELECT coalesce(sum(compute_ns), 0) FROM arrivals WHERE censored = 1 OR late = 1),
         (SELECT coalesce(sum(compute_ns), 0) FROM arrivals WHERE censored = 0 AND late = 0)
)sql";

constexpr std::string_view kWeak = R"sql(
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

// One sort and a walk: ranking with window functions takes three times as long.
constexpr std::string_view kSortedArrivals =
    "SELECT worker, run_time_ns, censored, late FROM arrivals ORDER BY worker, run_time_ns";

constexpr std::string_view kWaitedFor =
    "SELECT last_worker, count(*) FROM steps GROUP BY last_worker";

struct RunTime {
  Duration value;
  bool censored;
};

// Takes the run-times of one worker, in order.
void set_median(WorkerStatistics& worker, const std::vector<RunTime>& sorted) {
  worker.median_run_time = sorted[(sorted.size() - 1) / 2].value;
  for (const RunTime& run_time : sorted) {
    if (run_time.value > worker.median_run_time) break;
    if (run_time.censored) worker.median_exact = false;
  }
}

// avg() and sum() pass over NULL, which is how NaN is stored; a mean with a NaN in it must be NaN.
// Of a step in which nobody's whole gradient was used the loss is not NaN, but unknown.
constexpr std::string_view kCurve = R"sql(
  WITH numbered AS (
    SELECT step, loss, contributors, elapsed_ns, row_number() OVER (ORDER BY step) - 1 AS place,
           count(*) OVER () AS n
    FROM steps
  )
  SELECT min(step), CASE WHEN sum(loss IS NULL AND contributors > 0) = 0 THEN avg(loss) END,
         CAST(avg(elapsed_ns) AS INTEGER)
  FROM numbered GROUP BY place * min(n, ?1) / n ORDER BY min(step)
)sql";

constexpr std::string_view kRecentLoss = R"sql(
  SELECT CASE WHEN count(loss) = count(*) THEN
           CASE WHEN sum(samples) > 0 THEN sum(loss * samples) / sum(samples) ELSE avg(loss) END END
  FROM (SELECT loss, samples FROM steps WHERE loss IS NOT NULL OR contributors > 0
        ORDER BY step DESC LIMIT ?1)
)sql";

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

Result<StepStatistics> step_times_of(const Database& database) {
  return only(database.query(kStepTimes, [](const Statement& row) {
    StepStatistics times;
    times.median = row.duration(0);
    times.p90 = row.duration(1);
    if (!row.is_null(2)) {
      times.overhead_median = row.duration(2);
      times.overhead_p90 = row.duration(3);
    }
    times.closing_median = row.duration(4);
    times.undecided_max = row.duration(5);
    times.undecided_share = row.real(6);
    return times;
  }));
}

Result<WeakStatistics> weak_of(const Database& database) {
  return only(database.query(kWeak, [](const Statement& row) {
    WeakStatistics weak{.fresh_mean = {},
                        .fresh_min = row.real(1),
                        .stale_steps = row.count(2),
                        .staleness_max = row.count(3),
                        .uneven_steps = row.count(4),
                        .contributors_mean = row.real(5),
                        .contributors_min = row.small(6),
                        .contributors_max = row.small(7)};
    if (const double fresh = row.real(0); !std::isnan(fresh)) weak.fresh_mean = fresh;
    return weak;
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

Result<WasteStatistics> waste_of(const Database& database) {
  return only(database.query(kWaste, [](const Statement& row) {
    WasteStatistics waste{.stopped = row.count(0), .restart_median = {}, .share = {}};
    if (!row.is_null(1)) waste.restart_median = row.duration(1);
    const auto wasted = static_cast<double>(row.integer(2));
    const double all = wasted + static_cast<double>(row.integer(3));
    if (all > 0.0) waste.share = wasted / all;
    return waste;
  }));
}

Result<std::vector<CurvePoint>> curve_of(const Database& database, uint32_t points) {
  DROVER_CHECK(points > 0);
  return database.query(
      kCurve,
      [](const Statement& row) {
        return CurvePoint{
            .first_step = row.count(0), .loss = row.real(1), .step_time = row.duration(2)};
      },
      points);
}

Result<double> recent_loss_of(const Database& database, uint64_t last_steps) {
  return only(database.query(
      kRecentLoss, [](const Statement& row) { return row.real(0); }, last_steps));
}

}  // namespace drover
