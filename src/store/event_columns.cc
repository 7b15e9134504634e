#include "store/event_columns.h"

#include <fmt/format.h>

#include <utility>

#include "store/schema.h"

namespace drover {
namespace {

// Names of an enumeration's values, in their order.
template <typename Enum>
struct Words;
template <>
struct Words<LossCause> {
  static constexpr std::array kAll = {"disconnected", "reported", "exited", "join-timeout",
                                      "killed"};
};
template <>
struct Words<event::LossEffect> {
  static constexpr std::array kAll = {"none",       "continues",     "not-started",
                                      "may-return", "no-evaluation", "unprotected"};
};
template <>
struct Words<RestartPoint> {
  static constexpr std::array kAll = {"memory", "checkpoint", "checkpoint-if-any", "beginning",
                                      "beginning-none-yet"};
};
template <>
struct Words<event::RestartCause> {
  static constexpr std::array kAll = {"workers-lost", "server-lost", "coordinator-lost",
                                      "state-lost"};
};
template <>
struct Words<CheckpointFailure> {
  static constexpr std::array kAll = {"none", "other", "system", "busy", "timeout"};
};
template <>
struct Words<EndCause> {
  static constexpr std::array kAll = {
      "unknown",       "completed",     "target-reached", "workers-left", "interrupted",
      "diverged",      "workers-lost",  "server-lost",    "rank-lost",    "join-timeout",
      "launcher-lost", "record-failed", "restart-failed"};
};
static_assert(Words<EndCause>::kAll.size() == static_cast<size_t>(EndCause::kRestartFailed) + 1);

template <typename Enum>
std::string_view word_of(Enum value) {
  return Words<Enum>::kAll[static_cast<size_t>(value)];
}

template <typename Enum>
bool parse_word(std::string_view word, Enum& value) {
  for (size_t i = 0; i < Words<Enum>::kAll.size(); ++i) {
    if (word != Words<Enum>::kAll[i]) continue;
    value = static_cast<Enum>(i);
    return true;
  }
  return false;
}

constexpr size_t place_of(std::string_view name) {
  for (size_t i = 0; i < kEventColumns.size(); ++i) {
    if (kEventColumns[i].name == name) return i;
  }
  return kEventColumns.size();
}

// fields_of() passes every field of a payload to one of the following classes.
class ToCells {
 public:
  void text(std::string_view column, std::string& value) { cell(column) = value; }
  void real(std::string_view column, double& value) { cell(column) = value; }
  void duration(std::string_view column, Duration& value) {
    cell(column) = static_cast<int64_t>(value.count());
  }
  void target(std::string_view column, Target& value) { cell(column) = to_text(value); }
  void outcome(std::string_view column, RunOutcome& value) {
    cell(column) = std::string(name_of(value));
  }
  template <typename Integer>
  void number(std::string_view column, Integer& value) {
    cell(column) = static_cast<int64_t>(value);
  }
  template <typename Enum>
  void word(std::string_view column, Enum& value) {
    cell(column) = std::string(word_of(value));
  }

  EventCells take() { return std::move(cells_); }

 private:
  ColumnValue& cell(std::string_view column) { return cells_.at(place_of(column)); }

  EventCells cells_;
};

class FromRow {
 public:
  FromRow(const Statement& row, int first) : row_(row), first_(first) {}

  void text(std::string_view column, std::string& value) { value = row_.text(at(column)); }
  void real(std::string_view column, double& value) { value = row_.real(at(column)); }
  void duration(std::string_view column, Duration& value) { value = row_.duration(at(column)); }
  void target(std::string_view column, Target& value) {
    const std::string text = row_.text(at(column));
    const Result<Target> parsed = parse_target(text);
    if (parsed) value = parsed.value();
    if (!parsed) complain(column, text);
  }
  void outcome(std::string_view column, RunOutcome& value) {
    const std::string text = row_.text(at(column));
    const Result<RunOutcome> parsed = parse_outcome(text);
    if (parsed) value = parsed.value();
    if (!parsed) complain(column, text);
  }
  template <typename Integer>
  void number(std::string_view column, Integer& value) {
    value = static_cast<Integer>(row_.integer(at(column)));
  }
  template <typename Enum>
  void word(std::string_view column, Enum& value) {
    const std::string text = row_.text(at(column));
    if (!parse_word(text, value)) complain(column, text);
  }

  const std::string& trouble() const { return trouble_; }

 private:
  int at(std::string_view column) const { return first_ + static_cast<int>(place_of(column)); }
  void complain(std::string_view column, const std::string& text) {
    trouble_ = fmt::format("an event's {} has the unknown value '{}'", column, text);
  }

  const Statement& row_;
  const int first_;
  std::string trouble_;
};

template <typename To>
void fields_of(ProcessExit& exit, To& to) {
  to.number("by_signal", exit.by_signal);
  to.number("exit_number", exit.number);
}
template <typename To>
void fields_of(event::Lost& lost, To& to) {
  to.word("cause", lost.loss.cause);
  to.text("detail", lost.loss.detail);
  fields_of(lost.loss.exit, to);
  to.duration("duration_ns", lost.loss.waited);
  to.word("effect", lost.effect);
  to.word("restart_from", lost.fallback);
}
template <typename To>
void fields_of(event::BackedOff& off, To& to) {
  to.number("times", off.losses);
  to.duration("duration_ns", off.wait);
  to.number("by_host", off.host);
}
template <typename To>
void fields_of(event::Joined&, To&) {}
template <typename To>
void fields_of(event::Left&, To&) {}
template <typename To>
void fields_of(event::Exited& exited, To& to) {
  fields_of(exited.exit, to);
  to.number("restarted", exited.restarted);
}
template <typename To>
void fields_of(event::Refused& refused, To& to) {
  to.text("tensor", refused.tensor);
}
template <typename To>
void fields_of(event::Outlier& outlier, To& to) {
  to.real("ratio", outlier.ratio);
  to.text("tensor", outlier.tensor);
  to.number("used", outlier.used);
  to.number("times", outlier.times);
}
template <typename To>
void fields_of(event::PullShare& pull, To& to) {
  to.real("share", pull.share);
  to.number("shards_left_out", pull.shards_left_out);
  to.number("shards", pull.shards);
  to.real("step_s", pull.step_seconds);
  to.real("all_blocks_s", pull.all_seconds);
  to.number("pulls", pull.pulls);
}
template <typename To>
void fields_of(event::Reached& reached, To& to) {
  to.number("version", reached.version);
  to.target("target", reached.target);
}
template <typename To>
void fields_of(event::CheckpointKept& kept, To& to) {
  to.number("version", kept.version);
  to.number("bytes", kept.bytes);
  to.duration("duration_ns", kept.took);
}
template <typename To>
void fields_of(event::CheckpointFailed& failed, To& to) {
  to.number("version", failed.version);
  to.word("cause", failed.cause);
  to.number("os_error", failed.os_error);
  to.text("detail", failed.detail);
}
template <typename To>
void fields_of(event::Resumed& resumed, To& to) {
  to.number("version", resumed.version);
  to.number("from_memory", resumed.from_memory);
  to.text("detail", resumed.folder);
}
template <typename To>
void fields_of(event::Restarted& restarted, To& to) {
  to.word("cause", restarted.cause);
  to.word("restart_from", restarted.from);
}
template <typename To>
void fields_of(event::Ended& ended, To& to) {
  to.outcome("outcome", ended.outcome);
  to.word("cause", ended.cause);
  to.text("detail", ended.reason);
}

std::string joined(bool with_types) {
  std::string text;
  for (const EventColumn& column : kEventColumns) {
    text += text.empty() ? "" : ", ";
    text += column.name;
    if (with_types) text += fmt::format(" {}", column.type);
  }
  return text;
}

}  // namespace

std::string event_column_definitions() { return joined(true); }
std::string event_column_names() { return joined(false); }

EventCells cells_of(const EventPayload& payload) {
  ToCells to;
  EventPayload copy = payload;  // fields_of() needs a mutable payload
  std::visit([&](auto& each) { fields_of(each, to); }, copy);
  return to.take();
}

const ColumnValue& cell_of(const EventCells& cells, std::string_view column) {
  return cells.at(place_of(column));
}

Result<EventPayload> read_payload(EventKind kind, const Statement& row, int first) {
  EventPayload payload = empty_payload(kind);
  FromRow from(row, first);
  std::visit([&](auto& each) { fields_of(each, from); }, payload);
  if (!from.trouble().empty()) return invalid_input(from.trouble());
  return payload;
}

std::string_view name_of(EndCause cause) { return word_of(cause); }

Result<EndCause> parse_end_cause(std::string_view name) {
  EndCause cause{};
  if (parse_word(name, cause)) return cause;
  return invalid_input(fmt::format("'{}' is not a cause of a run's end", name));
}

}  // namespace drover
