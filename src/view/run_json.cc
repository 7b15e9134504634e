#include "view/run_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/event_text.h"
#include "store/schema.h"

namespace drover {
namespace {

using nlohmann::json;

constexpr int kDigits = 6;
constexpr int kHeatDigits = 4;
constexpr int kMomentDigits = 9;  // times since the start of a long run differ only in late digits

// Rounded to few digits to keep the JSON of a long run short; 12.0 is written as 12.
json number(double value, int digits = kDigits) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  const int places = digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double scale = std::pow(10.0, std::abs(places));
  // Both branches scale by a whole number, so that the result is the double nearest to the digits.
  return places >= 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

json count(const std::optional<uint64_t>& value) { return value ? json(*value) : json(nullptr); }

json moment(Duration at) { return number(seconds(at), kMomentDigits); }
json moment(double at_s) { return number(at_s, kMomentDigits); }

json limit(Duration time_limit) {
  return time_limit > Duration::zero() ? number(seconds(time_limit)) : json(nullptr);
}

json numbers(const std::vector<double>& values, size_t from, int digits) {
  json list = json::array();
  for (size_t i = from; i < values.size(); ++i) list.push_back(number(values[i], digits));
  return list;
}

// Invalid UTF-8 (a file name may have any bytes) is replaced instead of raising an exception.
std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json pairs(const std::vector<std::pair<std::string, std::string>>& all) {
  json object = json::object();
  for (const auto& [key, value] : all) object[key] = value;
  return object;
}

// A setting as a number; `otherwise` if it is not one.
json whole_number(const std::string& text, uint64_t otherwise) {
  const bool digits = !text.empty() && text.size() < 16 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoull(text) : otherwise;
}

json cell_of(const RunPlace& place) {
  if (place.of == 0) return nullptr;
  return {{"title", place.title}, {"number", place.number}, {"of", place.of}};
}

json run_part(const RunSnapshot& snapshot) {
  const RunHeader& header = snapshot.header;
  const uint64_t digest = snapshot.end.parameters_digest;
  return {{"file", snapshot.file},
          {"id", to_hex(header.run_id)},
          {"started", header.started},
          {"command", header.command},
          {"job", header.job},
          {"outcome", name_of(snapshot.end.outcome)},
          {"reason", snapshot.end.reason},
          {"warning", snapshot.warning},
          {"policy", snapshot.setting("policy")},
          {"model", snapshot.setting("model")},
          {"data", snapshot.setting("data")},
          {"workers", snapshot.workers},
          {"shards", snapshot.shards},
          {"steps", count(snapshot.progress.steps)},
          {"batch", whole_number(snapshot.setting("batch"), 0)},
          {"settings", pairs(header.settings)},
          {"environment", pairs(header.environment)},
          {"digest", digest == 0 ? "" : to_hex(digest)},
          {"cell", cell_of(snapshot.place)}};
}

json progress_part(const RunSnapshot& snapshot) {
  const RunProgress& progress = snapshot.progress;
  return {{"step", progress.step},
          {"steps", count(progress.steps)},
          {"elapsed_s", moment(progress.elapsed_s)},
          {"left_s", number(progress.left_s)},
          {"steps_per_s", number(progress.steps_per_s)},
          {"state", name_of(progress.state)},
          {"quiet_s", number(progress.quiet_s)}};
}

json totals_part(const RunSnapshot& snapshot) {
  const PageTotals& totals = snapshot.totals;
  return {{"samples", totals.samples},
          {"used", totals.used},
          {"late", totals.late},
          {"refused", totals.refused},
          {"censored", totals.censored},
          {"contributors_mean", number(totals.contributors_mean)},
          {"loss", number(totals.loss)},
          {"accuracy", number(totals.accuracy)},
          {"test_loss", number(totals.test_loss)},
          {"test_accuracy", number(totals.test_accuracy)},
          {"step_median_s", number(totals.step_median_s)},
          {"step_p90_s", number(totals.step_p90_s)},
          {"waited_s", moment(totals.waited_s)},
          {"wait_all_s", moment(totals.wait_all_s)},
          {"saved_s", moment(totals.saved_s)},
          {"saved_exact", totals.saved_exact},
          {"saved_about_s", moment(totals.saved_about_s)}};
}

json evaluations_part(const RunSnapshot& snapshot) {
  json part = {{"step", json::array()},
               {"at_s", json::array()},
               {"loss", json::array()},
               {"accuracy", json::array()}};
  for (const EvaluationRecord& evaluation : snapshot.evaluations) {
    part["step"].push_back(evaluation.version);
    part["at_s"].push_back(moment(evaluation.at));
    part["loss"].push_back(number(evaluation.loss));
    part["accuracy"].push_back(number(evaluation.accuracy));
  }
  return part;
}

json decisions_part(const RunSnapshot& snapshot) {
  json part = json::array();
  for (const DecisionLine& line : snapshot.decisions) {
    part.push_back({{"step", line.decision.step},
                    {"at_s", moment(line.at_s)},
                    {"cutoff", line.decision.cutoff},
                    {"alive", line.decision.alive},
                    {"limit_s", limit(line.decision.time_limit)},
                    {"reason", line.decision.reason}});
  }
  return part;
}

json workers_part(const RunSnapshot& snapshot) {
  json part = json::array();
  for (const WorkerLine& line : snapshot.worker_lines) {
    part.push_back({{"worker", line.worker},
                    {"node", line.node},
                    {"state", name_of(line.state)},
                    {"steps", line.steps},
                    {"inclusion", number(line.inclusion)},
                    {"recurrence", number(line.recurrence)},
                    {"median_s", number(line.median_s)},
                    {"median_exact", line.median_exact},
                    {"late", line.late},
                    {"censored", line.censored},
                    {"last", line.last}});
  }
  return part;
}

json shards_part(const RunSnapshot& snapshot) {
  json part = json::array();
  for (const ShardLine& line : snapshot.shard_lines)
    part.push_back({{"shard", line.shard}, {"busy_share", number(line.busy_share)}});
  return part;
}

json events_part(const RunSnapshot& snapshot) {
  json part = json::array();
  for (const EventRecord& event : snapshot.events) {
    part.push_back({{"at_s", moment(event.at)},
                    {"step", event.step},
                    {"kind", name_of(event.kind())},
                    {"peer", peer_text(event)},
                    {"text", event_text(event)}});
  }
  return part;
}

// The parts that are compared and sent as a whole.
constexpr std::pair<const char*, json (*)(const RunSnapshot&)> kParts[] = {
    {"run", run_part},         {"progress", progress_part},
    {"totals", totals_part},   {"evaluations", evaluations_part},
    {"workers", workers_part}, {"decisions", decisions_part},
    {"shards", shards_part},   {"events", events_part}};

std::string label_of(const HeatRow& row) {
  const std::string first = std::to_string(row.first);
  if (row.count == 1) return "worker " + first;
  if (row.last - row.first + 1 == row.count)
    return "workers " + first + " to " + std::to_string(row.last);
  return std::to_string(row.count) + " workers from worker " + first;
}

json rows_of(const HeatMap& heat) {
  json rows = json::array();
  for (const HeatRow& row : heat.rows) {
    rows.push_back(
        {{"label", label_of(row)}, {"first", row.first}, {"count", row.count}, {"node", row.node}});
  }
  return rows;
}

json steps_part(const StepSeries& series, size_t from) {
  json part = {{"per", series.per}, {"from", from}};
  for (const auto& [name, values] : series.columns)
    part[std::string(name)] = numbers(values, from, name == "at_s" ? kMomentDigits : kDigits);
  return part;
}

json heat_part(const HeatMap& heat, size_t from, bool with_rows) {
  json part = {{"per", heat.per},
               {"from", from},
               {"step", json::array()},
               {"time_s", json::array()},
               {"late", json::array()}};
  if (with_rows) part["rows"] = rows_of(heat);
  for (size_t i = from; i < heat.step.size(); ++i) {
    part["step"].push_back(heat.step[i]);
    part["time_s"].push_back(numbers(heat.time_s[i], 0, kHeatDigits));
    part["late"].push_back(numbers(heat.late[i], 0, kHeatDigits));
  }
  return part;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return same(x, y); });
}

// The index of the first difference; the common length if they do not differ.
template <typename Values>
size_t first_difference(const Values& a, const Values& b) {
  size_t place = 0;
  while (place < a.size() && place < b.size() && same(a[place], b[place])) ++place;
  return place;
}

// The index at which an update begins. An update has at least one entry if there is any, because
// the page finds the position by its first entry.
size_t update_from(size_t difference, size_t before, size_t now) {
  return difference == now && now < before && now > 0 ? now - 1 : difference;
}

// The length of both if they do not differ.
size_t first_difference(const StepSeries& before, const StepSeries& now) {
  if (before.per != now.per) return 0;
  size_t from = now.columns.empty() ? 0 : now.columns.front().second.size();
  for (size_t i = 0; i < now.columns.size(); ++i)
    from = std::min(from, first_difference(before.columns[i].second, now.columns[i].second));
  return from;
}

size_t length_of(const StepSeries& series) {
  return series.columns.empty() ? 0 : series.columns.front().second.size();
}

bool is_changed(const StepSeries& before, const StepSeries& now, size_t from) {
  return before.per != now.per || from < length_of(before) || from < length_of(now);
}

size_t first_difference(const HeatMap& before, const HeatMap& now) {
  if (before.per != now.per || before.rows != now.rows) return 0;
  return std::min(first_difference(before.time_s, now.time_s),
                  first_difference(before.late, now.late));
}

}  // namespace

std::string all_json(const RunSnapshot& snapshot) {
  json all = {{"format", kPageFormat}};
  for (const auto& [name, part] : kParts) all[name] = part(snapshot);
  all["steps"] = steps_part(snapshot.steps, 0);
  all["heat"] = heat_part(snapshot.heat, 0, true);
  return text_of(all);
}

std::string update_json(const RunSnapshot& before, const RunSnapshot& now) {
  json update = json::object();
  for (const auto& [name, part] : kParts) {
    json value = part(now);
    if (value != part(before)) update[name] = std::move(value);
  }
  if (const size_t from = first_difference(before.steps, now.steps);
      is_changed(before.steps, now.steps, from)) {
    update["steps"] =
        steps_part(now.steps, update_from(from, length_of(before.steps), length_of(now.steps)));
  }
  const bool other_rows = before.heat.rows != now.heat.rows || before.heat.per != now.heat.per;
  const size_t from = first_difference(before.heat, now.heat);
  if (other_rows || from < before.heat.step.size() || from < now.heat.step.size())
    update["heat"] = heat_part(
        now.heat, update_from(from, before.heat.step.size(), now.heat.step.size()), other_rows);
  return update.empty() ? std::string() : text_of(update);
}

std::string step_json(const StepDetail& detail) {
  const StepFacts& facts = detail.facts;
  json step = {{"step", detail.record.step},
               {"elapsed_s", number(facts.elapsed_s)},
               {"cutoff", number(facts.cutoff)},
               {"oracle", number(facts.oracle)},
               {"contributors", detail.record.contributors},
               {"reason", detail.decisions.empty() ? "" : detail.decisions.back().reason},
               {"decisions", json::array()},
               {"arrivals", json::array()},
               {"forecast", nullptr}};
  for (const DecisionRecord& decision : detail.decisions) {
    step["decisions"].push_back({{"at_s", number(seconds(decision.at))},
                                 {"cutoff", decision.cutoff},
                                 {"limit_s", limit(decision.time_limit)},
                                 {"reason", decision.reason}});
  }
  for (const RecordedArrival& each : detail.arrivals) {
    step["arrivals"].push_back({{"worker", each.arrival.worker},
                                {"time_s", number(seconds(each.arrival.run_time))},
                                {"censored", each.arrival.censored},
                                {"late", each.late},
                                {"used", in_time(each)}});
  }
  if (detail.forecast) {
    step["forecast"] = {{"rank", detail.forecast->rank},
                        {"mean_s", numbers(detail.forecast->mean_s, 0, kDigits)},
                        {"low_s", numbers(detail.forecast->low_s, 0, kDigits)},
                        {"high_s", numbers(detail.forecast->high_s, 0, kDigits)}};
  }
  return text_of(step);
}

std::string error_json(const std::string& message) { return text_of({{"error", message}}); }

}  // namespace drover
