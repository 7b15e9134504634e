#include "net/message_courier.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace drover {
namespace {

// Between processes of one host a block of 256 KB takes about 10 us, as long as this number of
// polls. After that there are pauses, since other processes may need the processor. Pauses grow
// with the elapsed time, so that the end of an operation is noticed at most 25 % late.
constexpr uint32_t kLooksAtOnce = 20;
constexpr Duration kShortest = std::chrono::microseconds(20);
constexpr Duration kLongest = std::chrono::milliseconds(1);

}  // namespace

Duration pause_before_next_look(uint32_t in_vain) {
  if (in_vain < kLooksAtOnce) return Duration::zero();
  Duration pause = kShortest;
  for (uint32_t look = kLooksAtOnce; look < in_vain && pause < kLongest; ++look) pause += pause / 4;
  return std::min(pause, kLongest);
}

MessageCourier::MessageCourier(boost::asio::any_io_executor executor, MessagePort& port)
    : port_(port), next_look_(std::move(executor)) {}

bool MessageCourier::receive(std::span<std::byte> into, MessageAddress from, Done done) {
  return begin(port_.begin_receive(into, from),
               {.peer = from, .receives = true, .memory = {}, .done = std::move(done)});
}

bool MessageCourier::send(std::span<const std::byte> message, MessageAddress to,
                          MessagePort::Memory memory, Done done) {
  return begin(
      port_.begin_send(message, to),
      {.peer = to, .receives = false, .memory = std::move(memory), .done = std::move(done)});
}

bool MessageCourier::begin(Result<MessagePort::Ticket> ticket, UnderWay begun) {
  const Result<bool> ended =
      ticket ? port_.has_ended(ticket.value()) : Result<bool>(ticket.error());
  if (ended && ended.value()) return true;
  if (!ended) {
    // Not from here, since the caller may not be ready for a callback.
    boost::asio::post(next_look_.get_executor(),
                      [done = std::move(begun.done), why = ended.error()] { done(why); });
    return false;
  }
  begun.ticket = ticket.value();
  under_way_.push_back(std::move(begun));
  // The new operation may end soon, even if older ones are pending for long.
  if (std::exchange(in_vain_, 0) >= kLooksAtOnce && planned_) next_look_.cancel();
  plan_look();
  return false;
}

void MessageCourier::plan_look() {
  if (under_way_.empty() || std::exchange(planned_, true)) return;
  const auto look_if_there = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  };
  const Duration pause = pause_before_next_look(in_vain_);
  if (pause == Duration::zero()) return boost::asio::post(next_look_.get_executor(), look_if_there);
  next_look_.expires_after(pause);
  // A cancelled timer means that there is a reason to poll at once.
  next_look_.async_wait([look_if_there](const boost::system::error_code&) { look_if_there(); });
}

void MessageCourier::look() {
  planned_ = false;
  std::vector<std::pair<Done, Status>> ended;
  std::erase_if(under_way_, [&](UnderWay& each) {
    const Result<bool> has = port_.has_ended(each.ticket);
    if (has && !has.value()) return false;
    ended.emplace_back(std::move(each.done), has ? done() : Status(has.error()));
    return true;
  });
  in_vain_ = ended.empty() ? in_vain_ + 1 : 0;
  plan_look();
  // Callbacks come last, since they may begin and end operations.
  for (auto& [done, status] : ended) done(status);
}

void MessageCourier::forget(MessageAddress peer) {
  // The callbacks are destroyed last: one may own this object.
  std::vector<UnderWay> forgotten;
  std::erase_if(under_way_, [&](UnderWay& each) {
    if (each.peer != peer) return false;
    end(each);
    forgotten.push_back(std::move(each));
    return true;
  });
}

void MessageCourier::close() {
  auto all = std::exchange(under_way_, {});
  for (UnderWay& each : all) end(each);
}

void MessageCourier::end(UnderWay& each) {
  if (each.receives)
    port_.cancel_receive(each.ticket);
  else
    port_.release_send(each.ticket, std::move(each.memory));
}

}  // namespace drover
