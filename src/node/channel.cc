#include "node/channel.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>
#include <variant>

#include "core/check.h"
#include "core/duration_text.h"

namespace drover {
namespace {

constexpr size_t kFramesPerWrite = 64;
// Frames of one peer that are read before other connections are served.
constexpr int kFramesPerTurn = 64;
// Messages under way in one lane: so many that receiving one and sending the next overlap, so few
// that newer parameters do not wait behind them.
constexpr size_t kMessagesMax = 16;
// Queued control messages and headers of one peer; a run's largest messages have a few megabytes.
constexpr size_t kQueuedBytesMax = 64 << 20;

}  // namespace

Channel::Channel(Socket socket, RunId run, std::unique_ptr<TlsSession> tls)
    : connection_(std::make_shared<Connection>(std::move(socket), std::move(tls))),
      next_beat_(connection_->executor()),
      run_(run) {}

void Channel::start(Callbacks callbacks) {
  replace_callbacks(std::move(callbacks));
  beat();
  read_frames();
}

// --- heartbeat

void Channel::beat() {
  next_beat_.expires_after(Heartbeat::kBeat);
  next_beat_.async_wait([channel = weak_from_this()](const boost::system::error_code& error) {
    const auto self = channel.lock();
    if (error || !self || !self->callbacks_) return;
    // Bytes, not frames: a block may take its time.
    if (std::exchange(self->received_, self->connection_->received()) < self->received_)
      self->heartbeat_.on_received();
    const Heartbeat::Action action = self->heartbeat_.on_beat();
    if (action == Heartbeat::Action::kPeerIsDead)
      return self->fail(Error{ErrorKind::kDisconnected,
                              "no heartbeat for " + duration_text(Heartbeat::kSilence)});
    if (action == Heartbeat::Action::kSendAlive) self->send({{.type = FrameType::kAlive}, {}});
    self->beat();
  });
}

void Channel::replace_callbacks(Callbacks callbacks) {
  callbacks_ = std::make_shared<Callbacks>(std::move(callbacks));
}

void Channel::carry_floats_by(std::shared_ptr<MessageCourier> courier, MessageAddress peer) {
  courier_ = std::move(courier);
  courier_peer_ = peer;
}

// --- reading

// Reads the frames that are here. on_read() continues when more has come.
void Channel::read_frames() {
  for (int turn = 0; callbacks_ && turn < kFramesPerTurn; ++turn) {
    if (reading_ == Reading::kHeader && !read_header()) return;
    if (reading_ == Reading::kPayload && !read_payload()) return;
  }
  if (!callbacks_) return;
  boost::asio::post(connection_->executor(), [self = shared_from_this()] { self->read_frames(); });
}

// These return false if the rest of the frame has not come yet, or the channel has closed.
bool Channel::read_header() {
  const bool here = connection_->read(
      header_bytes_, [self = shared_from_this()](const Status& status) { self->on_read(status); });
  return here && on_header();
}

bool Channel::on_header() {
  const auto header = decode_header(header_bytes_);
  if (!header) {
    fail(header.error());
    return false;
  }
  if (header.value().run != run_) {
    fail(invalid_input(
        "the peer has the token of another run; check --token-file and DROVER_TOKEN"));
    return false;
  }
  if (header.value().type == FrameType::kControl && header.value().length > control_bytes_max_) {
    fail(invalid_input("a message of " + std::to_string(header.value().length) +
                       " bytes exceeds the limit of " + std::to_string(control_bytes_max_) +
                       " bytes"));
    return false;
  }
  header_ = header.value();
  reading_ = Reading::kPayload;
  return true;
}

bool Channel::read_payload() {
  if (header_.length == 0) return deliver();
  std::span<std::byte> into;
  if (header_.type == FrameType::kControl) {
    control_bytes_.resize(header_.length);
    into = control_bytes_;
  } else {
    const auto callbacks = callbacks_;
    if (!callbacks->payload_for) {
      fail(invalid_input("the peer sent an unexpected block"));
      return false;
    }
    auto place = callbacks->payload_for(header_);
    if (!place) {
      fail(place.error());
      return false;
    }
    DROVER_CHECK(place.value().size() == header_.length);
    into = place.value();
  }
  const auto on_here = [self = shared_from_this()](const Status& status) { self->on_read(status); };
  const bool here = courier_ && header_.type != FrameType::kControl
                        ? courier_->receive(into, courier_peer_, on_here)
                        : connection_->read(into, on_here);
  return here && deliver();
}

void Channel::on_read(const Status& status) {
  if (!callbacks_) return;
  if (!status) return fail(status.error());
  if (reading_ == Reading::kHeader ? on_header() : deliver()) read_frames();
}

bool Channel::deliver() {
  reading_ = Reading::kHeader;
  if (header_.type == FrameType::kAlive) return true;
  // A copy of the pointer: the callback may close the channel or replace the callbacks.
  const auto callbacks = callbacks_;
  Status status = done();
  if (header_.type == FrameType::kControl) {
    auto message = decode_control(std::span(control_bytes_).first(header_.length));
    if (!message) {
      fail(message.error());
      return false;
    }
    if (auto* refusal = std::get_if<Refusal>(&message.value())) {
      was_refused_ = true;
      fail(Error{refusal->retry_later ? ErrorKind::kDisconnected : ErrorKind::kRefused,
                 "refused by the peer: " + refusal->reason});
      return false;
    }
    status = callbacks->on_control ? callbacks->on_control(std::move(message).value())
                                   : Status(invalid_input("the peer sent an unexpected message"));
  } else {
    status = callbacks->on_frame ? callbacks->on_frame(header_)
                                 : Status(invalid_input("the peer sent an unexpected block frame"));
  }
  if (!callbacks_) return false;
  if (!status) fail(status.error());
  return status.ok() && callbacks_;
}

// --- writing

void Channel::send(Frame frame, int file) {
  heartbeat_.on_sent();
  if (put_in_queue(std::move(frame), file)) plan_write();
}

// If no other frame is sent, the next heartbeat flushes it.
void Channel::send_with_next(Frame frame) { put_in_queue(std::move(frame), -1); }

// Returns whether it may be written.
bool Channel::put_in_queue(Frame frame, int file) {
  if (!callbacks_ || close_when_sent_) return false;
  Queued queued;
  frame.header.run = run_;
  frame.header.length = 0;
  if (auto* control = std::get_if<Control>(&frame.payload)) {
    queued.control = encode_control(*control);
    frame.header.length = static_cast<uint32_t>(queued.control.size());
  } else if (auto* floats = std::get_if<FloatSlice>(&frame.payload)) {
    frame.header.length =
        static_cast<uint32_t>(floats->length * bytes_of(frame.header.number_type));
    queued.floats = std::move(*floats);
  }
  queued.header = frame.header;
  queued.encoded = encode_header(frame.header);
  queued.file = file;
  enqueue(std::move(queued));
  if (queued_bytes_ <= kQueuedBytesMax) return true;
  give_up();
  return false;
}

// Posted, because the caller does not expect callbacks.
void Channel::give_up() {
  if (std::exchange(gave_up_, true)) return;
  boost::asio::post(connection_->executor(), [self = shared_from_this()] {
    if (self->callbacks_)
      self->fail(Error{ErrorKind::kDisconnected, "the peer does not read its messages"});
  });
}

void Channel::send_latest(Frame frame) {
  forget_older(frame.header);
  send(std::move(frame));
}

void Channel::forget_older(const FrameHeader& header) {
  const auto older = std::find_if(queue_.begin(), queue_.end(), [&](const Queued& queued) {
    return queued.header.type == FrameType::kParameters && queued.header.block == header.block &&
           queued.header.flags == header.flags;
  });
  if (header.type != FrameType::kParameters || older == queue_.end()) return;
  queued_bytes_ -= kHeaderBytes;
  queue_.erase(older);
}

void Channel::enqueue(Queued queued) {
  queued_bytes_ += kHeaderBytes + queued.control.size();
  if (queued.header.type != FrameType::kParameters) return queue_.push_back(std::move(queued));
  auto place = queue_.end();
  while (place != queue_.begin()) {
    const Queued& before = *std::prev(place);
    if (before.header.type != FrameType::kParameters) break;
    if (before.header.block <= queued.header.block) break;
    --place;
  }
  queue_.insert(place, std::move(queued));
}

void Channel::plan_write() {
  if (writing_ || std::exchange(write_planned_, true)) return;
  boost::asio::post(connection_->executor(), [self = shared_from_this()] {
    self->write_planned_ = false;
    self->write_queued();
  });
}

void Channel::write_queued() {
  while (callbacks_ && !writing_ && !queue_.empty() && messages_under_way_ < kMessagesMax) {
    if (write_some()) on_written();
  }
  if (callbacks_ && close_when_sent_ && idle()) close();
}

// Writes queued frames together: one system call for many small frames. Returns whether the write
// is complete.
bool Channel::write_some() {
  being_written_.clear();
  std::vector<boost::asio::const_buffer> parts;
  int file = -1;
  const size_t frames = courier_ ? kMessagesMax : kFramesPerWrite;
  while (!queue_.empty() && being_written_.size() < frames) {
    // A file is sent with the first byte of a write.
    if (queue_.front().file >= 0 && !being_written_.empty()) break;
    file = std::max(file, queue_.front().file);
    queued_bytes_ -= kHeaderBytes + queue_.front().control.size();
    being_written_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  for (Queued& queued : being_written_) {
    parts.emplace_back(queued.encoded.data(), queued.encoded.size());
    if (!queued.control.empty()) parts.emplace_back(queued.control.data(), queued.control.size());
    if (!queued.floats.buffer) continue;
    std::span<const std::byte> bytes = std::as_bytes(queued.floats.span());
    if (queued.header.number_type != NumberType::kFloat32) {
      if (!spare_halves_.empty()) {
        queued.halves = std::move(spare_halves_.back());
        spare_halves_.pop_back();
      }
      queued.halves.resize(queued.floats.length);
      narrow(queued.header.number_type, queued.floats.span(), queued.halves);
      bytes = std::as_bytes(std::span<const uint16_t>(queued.halves));
    }
    if (courier_ && !bytes.empty())
      send_message(queued, bytes);
    else
      parts.emplace_back(bytes.data(), bytes.size());
  }
  writing_ = true;
  return connection_->write(
      parts,
      [self = shared_from_this()](const Status& status) {
        if (!status) {
          self->writing_ = false;
          self->being_written_.clear();
          if (self->callbacks_) self->fail(status.error());
          return;
        }
        self->on_written();
        self->write_queued();
      },
      file);
}

// Does not wait for earlier messages to arrive; kMessagesMax limits how many are under way.
void Channel::send_message(Queued& queued, std::span<const std::byte> bytes) {
  const auto message = std::make_shared<Message>(
      Message{std::exchange(queued.floats, {}), std::exchange(queued.halves, {})});
  ++messages_under_way_;
  const bool is_out = courier_->send(bytes, courier_peer_, message,
                                     [self = shared_from_this(), message](const Status& status) {
                                       self->on_message_sent(*message, status);
                                       if (status) self->write_queued();
                                     });
  if (is_out) on_message_sent(*message, done());
}

void Channel::on_message_sent(Message& message, const Status& status) {
  --messages_under_way_;
  if (!callbacks_) return;
  if (!status) return fail(status.error());
  if (!message.halves.empty()) spare_halves_.push_back(std::move(message.halves));
  const auto callbacks = callbacks_;
  if (callbacks->on_floats_sent) callbacks->on_floats_sent(message.floats.buffer);
}

void Channel::on_written() {
  writing_ = false;
  const auto callbacks = callbacks_;
  auto sent = std::exchange(being_written_, {});
  for (Queued& queued : sent) {
    if (!queued.halves.empty()) spare_halves_.push_back(std::move(queued.halves));
    if (callbacks && queued.floats.buffer && callbacks->on_floats_sent)
      callbacks->on_floats_sent(queued.floats.buffer);
  }
}

void Channel::refuse(const Error& why) {
  send(
      control_frame(Refusal{.reason = why.message, .retry_later = why.kind == ErrorKind::kNotNow}));
  close_when_sent();
}

void Channel::close() {
  if (callbacks_ && !writing_ && !queue_.empty()) write_some();
  callbacks_.reset();
  queue_.clear();
  next_beat_.cancel();
  if (courier_) courier_->forget(courier_peer_);
  connection_->close();
}

void Channel::close_when_sent() {
  if (!callbacks_) return;
  close_when_sent_ = true;
  // Input is ignored from here on; the channel only writes its queue.
  replace_callbacks({});
  plan_write();
}

void Channel::fail(const Error& why) {
  const auto callbacks = callbacks_;
  if (why.kind == ErrorKind::kInvalidInput || why.kind == ErrorKind::kNotNow) {
    refuse(why);
  } else {
    queue_.clear();
    close();
  }
  if (callbacks && callbacks->on_closed) callbacks->on_closed(why);
}

}  // namespace drover
