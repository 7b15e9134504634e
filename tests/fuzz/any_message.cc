#include "fuzz/any_message.h"

#include <array>
#include <limits>

namespace drover::fuzz {
namespace {

double any_double(Choices& choices) {
  constexpr std::array<double, 5> kEdges = {
      std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::max(), -1.0, std::numeric_limits<double>::denorm_min()};
  const uint32_t choice = choices.any<uint8_t>();
  if (choice < 240) return choice / 16.0;
  if (choice < 250) return kEdges[choice % kEdges.size()];
  return choices.any<double>();
}

Duration any_duration(Choices& choices) {
  const uint32_t choice = choices.any<uint8_t>();
  if (choice < 240) return choices.pause();
  if (choice < 250) return Duration(std::numeric_limits<int64_t>::max());
  return choices.any<Duration>();
}

std::vector<StepClosed::Arrival> any_arrivals(Choices& choices, Step step) {
  std::vector<StepClosed::Arrival> arrivals;
  const uint32_t arrived = choices.any<uint8_t>();
  for (WorkerId worker = 0; worker < 6; ++worker) {
    if ((arrived >> worker & 1) != 0) arrivals.push_back({worker, any_duration(choices), step});
  }
  if (arrived >= 192 && !arrivals.empty()) arrivals.push_back(arrivals.front());
  return arrivals;
}

StepClosed any_closing(Choices& choices, Step step) {
  StepClosed closed{.step = choices.around(step), .elapsed = any_duration(choices)};
  closed.arrivals = any_arrivals(choices, closed.step);
  if (choices.flip()) closed.late = any_arrivals(choices, choices.around(step));
  for (uint32_t i = choices.below(4) / 2; i > 0; --i)
    closed.refused.push_back({choices.below(6), choices.below(8)});
  closed.samples = choices.around(32);
  closed.gradients = choices.below(6);
  closed.signal = any_double(choices);
  closed.noise = any_double(choices);
  if (choices.flip()) closed.block_counts.push_back({choices.below(6), choices.below(8)});
  return closed;
}

StepReport any_report(Choices& choices, Step step) {
  StepReport report{.step = choices.around(step),
                    .samples = choices.below(64),
                    .loss = any_double(choices),
                    .correct = choices.below(64),
                    .predictions = choices.below(64),
                    .compute = any_duration(choices)};
  if (choices.below(4) == 0) report.learning_rate = any_double(choices);
  report.blocks = choices.below(4);
  report.fresh = choices.below(4);
  report.staleness_sum = choices.around(4);
  for (uint32_t i = choices.below(4); i > 0; --i)
    report.responses.push_back({any_duration(choices), choices.flip()});
  return report;
}

}  // namespace

Control any_message(Choices& choices, Step step) {
  switch (choices.below(16)) {
    case 0:
    case 1:
    case 2:
      return Ready{};
    case 3:
    case 4:
    case 5:
    case 6:
      return any_closing(choices, step);
    case 7:
    case 8:
      return any_report(choices, step);
    case 9:
      return Arrived{.step = choices.around(step), .arrivals = any_arrivals(choices, step)};
    case 10:
      return Abandoned{.step = choices.around(step),
                       .resumed = choices.around(step),
                       .wasted = any_duration(choices)};
    case 11:
      return Evaluated{.version = choices.around(step),
                       .loss = any_double(choices),
                       .accuracy = any_double(choices),
                       .samples = choices.around(8)};
    case 12:
      return CheckpointSaved{.version = choices.around(step),
                             .file = "part",
                             .bytes = choices.around(8),
                             .took = any_duration(choices),
                             .error = choices.below(4) == 0 ? "the disk is full" : ""};
    case 13:
      return Farewell{.outcome = static_cast<RunOutcome>(choices.below(3)), .reason = "it leaves"};
    case 14:
      return LearningRate{.from = choices.around(step), .rate = any_double(choices)};
    default: {
      // Any message that can be decoded.
      auto read = decode_control(choices.take(choices.below(256)));
      return read ? std::move(read).value() : Control(WantInitial{});
    }
  }
}

}  // namespace drover::fuzz
