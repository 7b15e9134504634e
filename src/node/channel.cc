#include "node/channel.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/check.h"

namespace drover {
namespace {

constexpr size_t kFramesPerWrite = 64;

}  // namespace

Channel::Channel(Socket socket, RunId run)
    : connection_(std::make_shared<Connection>(std::move(socket))), run_(run) {}

void Channel::start(Callbacks callbacks) {
  replace_callbacks(std::move(callbacks));
  read_header();
}

void Channel::replace_callbacks(Callbacks callbacks) {
  callbacks_ = std::make_shared<Callbacks>(std::move(callbacks));
}

void Channel::read_header() {
  if (!callbacks_) return;
  connection_->read(header_bytes_, [self = shared_from_this()](const Status& status) {
    if (!self->callbacks_) return;
    if (!status) return self->fail(status.error());
    const auto header = decode_header(self->header_bytes_);
    if (!header) return self->fail(header.error());
    if (header.value().run != self->run_)
      return self->fail(invalid_input("the peer belongs to another run"));
    self->read_payload(header.value());
  });
}

void Channel::read_payload(const FrameHeader& header) {
  if (header.length == 0) return deliver(header);
  std::span<std::byte> into;
  if (header.type == FrameType::kControl) {
    control_bytes_.resize(header.length);
    into = control_bytes_;
  } else {
    const auto callbacks = callbacks_;
    if (!callbacks->payload_for)
      return fail(invalid_input("the peer sent a block where none belongs"));
    auto place = callbacks->payload_for(header);
    if (!place) return fail(place.error());
    DROVER_CHECK(place.value().size() == header.length);
    into = place.value();
  }
  connection_->read(into, [self = shared_from_this(), header](const Status& status) {
    if (!self->callbacks_) return;
    if (!status) return self->fail(status.error());
    self->deliver(header);
  });
}

void Channel::deliver(const FrameHeader& header) {
  // Held here, because the callback may close the channel or replace the callbacks.
  const auto callbacks = callbacks_;
  Status status = done();
  if (header.type == FrameType::kControl) {
    auto message = decode_control(std::span(control_bytes_).first(header.length));
    if (!message) return fail(message.error());
    if (auto* refusal = std::get_if<Refusal>(&message.value())) {
      return fail(Error{ErrorKind::kDisconnected, "it refused us: " + refusal->reason});
    }
    status = callbacks->on_control
                 ? callbacks->on_control(std::move(message).value())
                 : Status(invalid_input("the peer sent a message where none belongs"));
  } else {
    status = callbacks->on_frame
                 ? callbacks->on_frame(header)
                 : Status(invalid_input("the peer sent a block frame where none belongs"));
  }
  if (!callbacks_) return;
  if (!status) return fail(status.error());
  read_header();
}

void Channel::send(Frame frame) {
  if (!callbacks_ || close_when_sent_) return;
  Queued queued;
  frame.header.run = run_;
  frame.header.length = 0;
  if (auto* control = std::get_if<Control>(&frame.payload)) {
    queued.control = encode_control(*control);
    frame.header.length = static_cast<uint32_t>(queued.control.size());
  } else if (auto* floats = std::get_if<FloatSlice>(&frame.payload)) {
    frame.header.length = static_cast<uint32_t>(floats->length * sizeof(float));
    queued.floats = std::move(*floats);
  }
  queued.header = encode_header(frame.header);
  queue_.push_back(std::move(queued));
  write_queued();
}

void Channel::write_queued() {
  if (writing_ || !callbacks_) return;
  if (queue_.empty()) {
    if (close_when_sent_) close();
    return;
  }
  // Everything that waits goes out together: one system call for many small frames.
  const size_t count = std::min(queue_.size(), kFramesPerWrite);
  being_written_.clear();
  std::move(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count),
            std::back_inserter(being_written_));
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<boost::asio::const_buffer> parts;
  for (const Queued& queued : being_written_) {
    parts.emplace_back(queued.header.data(), queued.header.size());
    if (!queued.control.empty()) parts.emplace_back(queued.control.data(), queued.control.size());
    if (queued.floats.buffer) {
      const auto floats = queued.floats.span();
      parts.emplace_back(floats.data(), floats.size_bytes());
    }
  }
  writing_ = true;
  connection_->write(parts, [self = shared_from_this()](const Status& status) {
    self->writing_ = false;
    const auto callbacks = self->callbacks_;
    const auto sent = std::exchange(self->being_written_, {});
    if (!callbacks) return;
    for (const Queued& queued : sent) {
      if (queued.floats.buffer && callbacks->on_floats_sent)
        callbacks->on_floats_sent(queued.floats.buffer);
    }
    if (!status) return self->fail(status.error());
    self->write_queued();
  });
}

void Channel::refuse(const std::string& reason) {
  send(control_frame(Refusal{reason}));
  close_when_sent();
}

void Channel::close() {
  callbacks_.reset();
  queue_.clear();
  connection_->close();
}

void Channel::close_when_sent() {
  if (!callbacks_) return;
  close_when_sent_ = true;
  // Nothing more is taken in; keep the channel only for what is still to be written.
  replace_callbacks({});
  if (!writing_) write_queued();
}

void Channel::fail(const Error& why) {
  const auto callbacks = callbacks_;
  if (why.kind == ErrorKind::kInvalidInput) {
    refuse(why.message);
  } else {
    close();
  }
  if (callbacks && callbacks->on_closed) callbacks->on_closed(why);
}

}  // namespace drover
