// Frames over real sockets, both ends on one event loop.
#include "node/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/test_text.h"
#include "net/test_loop.h"
#include "net/test_port.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr RunId kRun = 0x1234;

// One end of a connection, and everything that its callbacks received.
struct End {
  std::shared_ptr<Channel> channel;
  std::vector<Control> controls;
  std::vector<FrameHeader> frames;
  std::vector<std::vector<float>> payloads;
  std::vector<std::string> order;  // frames and messages, in the order in which they came
  std::vector<Error> closed;
  size_t floats_sent = 0;
  size_t payloads_asked = 0;

  Channel::Callbacks callbacks() {
    Channel::Callbacks result;
    result.payload_for = [this](const FrameHeader& header) -> Result<std::span<std::byte>> {
      ++payloads_asked;
      payloads.emplace_back(header.length / sizeof(float));
      return std::as_writable_bytes(std::span(payloads.back()));
    };
    result.on_frame = [this](const FrameHeader& header) {
      frames.push_back(header);
      order.push_back("frame " + std::to_string(header.step));
      return done();
    };
    result.on_control = [this](Control message) {
      if (const auto* report = std::get_if<StepReport>(&message)) {
        order.push_back("report " + std::to_string(report->step));
      }
      controls.push_back(std::move(message));
      return done();
    };
    result.on_closed = [this](const Error& why) { closed.push_back(why); };
    result.on_floats_sent = [this](const ConstBuffer&) { ++floats_sent; };
    return result;
  }
};

class ChannelTest : public LoopTest {
 protected:
  ChannelTest() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    left_.channel = std::make_shared<Channel>(socket(fds[0]), kRun);
    right_fd_ = fds[1];
  }
  ~ChannelTest() override {
    left_.channel->close();
    if (right_.channel) right_.channel->close();
    loop_.restart();
    loop_.poll();
    if (right_fd_ >= 0) ::close(right_fd_);
  }

  Socket socket(int fd) { return {loop_, SocketProtocol(AF_UNIX, 0), fd}; }

  void start_left() { left_.channel->start(left_.callbacks()); }
  // The other end is a channel too; without this it is a bare descriptor.
  void start_both(RunId right_run = kRun) {
    right_.channel = std::make_shared<Channel>(socket(std::exchange(right_fd_, -1)), right_run);
    start_left();
    right_.channel->start(right_.callbacks());
  }

  void write_bare(const void* bytes, size_t size) {
    ASSERT_EQ(::write(right_fd_, bytes, size), static_cast<ssize_t>(size));
  }
  // All bytes that the channel has sent. REQUIRES: it has closed.
  std::vector<std::byte> read_bare() const {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> some{};
    for (ssize_t count = 0; (count = ::read(right_fd_, some.data(), some.size())) > 0;) {
      all.insert(all.end(), some.begin(), some.begin() + count);
    }
    return all;
  }
  std::string refusal_read_bare() const {
    const std::vector<std::byte> all = read_bare();
    if (all.size() < kHeaderBytes) return "no whole frame";
    const auto header = decode_header(std::span(all).first<kHeaderBytes>());
    if (!header || all.size() != kHeaderBytes + header.value().length) return "not one frame";
    const auto message = decode_control(std::span(all).subspan(kHeaderBytes));
    if (!message || !std::holds_alternative<Refusal>(message.value())) return "no refusal";
    return std::get<Refusal>(message.value()).reason;
  }

  End left_;
  End right_;
  int right_fd_ = -1;
};

Frame report_of(Step step) { return control_frame(StepReport{.step = step}); }

Frame block_of(Step step, const SharedBuffer& buffer, size_t offset, size_t length) {
  return {{.type = FrameType::kBlock, .step = step, .block = 7, .samples = 3},
          FloatSlice{buffer, offset, length}};
}

TEST_F(ChannelTest, ControlMessagesArriveAsTheyWereSent) {
  start_both();
  const std::vector<Control> sent = {
      Hello{.role = Role::kShard, .index = 3, .host = "h", .pid = 17},
      Ready{},
      Decision{.step = 9, .cutoff = 2, .alive = {0, 4}},
      Farewell{.outcome = RunOutcome::kFailed, .reason = "why"},
  };
  for (const Control& message : sent) {
    left_.channel->send({.header = {.type = FrameType::kControl}, .payload = message});
  }
  ASSERT_TRUE(run_until([&] { return right_.controls.size() == sent.size(); }));
  EXPECT_EQ(right_.controls, sent);
  EXPECT_TRUE(left_.closed.empty());
  EXPECT_TRUE(left_.channel->idle());
}

TEST_F(ChannelTest, FramesWithoutPayloadTravelBothWays) {
  start_both();
  left_.channel->send({{.type = FrameType::kPull, .flags = kSnapshotFlag, .version = 12}, {}});
  right_.channel->send({{.type = FrameType::kGone, .version = 14, .worker = 5}, {}});
  ASSERT_TRUE(run_until([&] { return left_.frames.size() == 1 && right_.frames.size() == 1; }));
  EXPECT_EQ(
      right_.frames[0],
      (FrameHeader{.type = FrameType::kPull, .flags = kSnapshotFlag, .run = kRun, .version = 12}));
  EXPECT_EQ(left_.frames[0].version, 14U);
  EXPECT_EQ(left_.frames[0].worker, 5U);
  EXPECT_EQ(left_.payloads_asked + right_.payloads_asked, 0U);
}

TEST_F(ChannelTest, FloatsAreSentWithoutACopyAndReleased) {
  start_both();
  const auto buffer = std::make_shared<FloatBuffer>(3 * kBlockFloats);
  for (size_t i = 0; i < buffer->size(); ++i) buffer->span()[i] = static_cast<float>(i) * 0.5F;
  left_.channel->send(block_of(1, buffer, kBlockFloats, kBlockFloats));
  left_.channel->send(block_of(2, buffer, 16, 1));
  EXPECT_FALSE(left_.channel->idle());
  ASSERT_TRUE(run_until([&] { return right_.frames.size() == 2 && left_.floats_sent == 2; }));
  ASSERT_EQ(right_.payloads[0].size(), kBlockFloats);
  EXPECT_EQ(std::memcmp(right_.payloads[0].data(), buffer->data() + kBlockFloats,
                        kBlockFloats * sizeof(float)),
            0);
  EXPECT_EQ(right_.payloads[1], std::vector<float>{8.0F});
  EXPECT_EQ(right_.frames[0].samples, 3U);
  EXPECT_EQ(right_.frames[0].block, 7U);
  EXPECT_EQ(buffer.use_count(), 1) << "nothing may still point to the floats";
}

TEST_F(ChannelTest, ManySmallFramesKeepTheirOrder) {
  start_both();
  const auto buffer = std::make_shared<FloatBuffer>(4);
  std::vector<std::string> expected;
  for (Step step = 0; step < 5'000; ++step) {
    if (step % 3 == 0) {
      left_.channel->send(block_of(step, buffer, 0, step % 5));
      expected.push_back("frame " + std::to_string(step));
    } else {
      left_.channel->send(report_of(step));
      expected.push_back("report " + std::to_string(step));
    }
  }
  ASSERT_TRUE(run_until([&] { return right_.order.size() == expected.size(); }));
  EXPECT_EQ(right_.order, expected);
  EXPECT_TRUE(run_until([&] { return left_.channel->idle(); }));
}

Frame parameters_of(BlockId block, Version version, const SharedBuffer& buffer) {
  return {{.type = FrameType::kParameters, .version = version, .block = block},
          FloatSlice{buffer, 0, buffer->size()}};
}

TEST_F(ChannelTest, ParametersGoInTheOrderOfTheirBlocks) {
  start_both();
  const auto buffer = std::make_shared<FloatBuffer>(4);
  for (const BlockId block : {3u, 1u, 2u, 0u}) left_.channel->send(parameters_of(block, 1, buffer));
  left_.channel->send({{.type = FrameType::kStop, .step = 5}, {}});
  left_.channel->send(parameters_of(0, 2, buffer));
  ASSERT_TRUE(run_until([&] { return right_.frames.size() == 6; }));
  std::vector<BlockId> blocks;
  for (const FrameHeader& header : right_.frames) {
    if (header.type == FrameType::kParameters) blocks.push_back(header.block);
  }
  EXPECT_EQ(blocks, (std::vector<BlockId>{0, 1, 2, 3, 0})) << "nothing overtakes other frames";
}

TEST_F(ChannelTest, SendLatestReplacesQueuedParametersOfTheBlock) {
  start_both();
  const auto buffer = std::make_shared<FloatBuffer>(4);
  for (Version version = 1; version <= 1000; ++version) {
    for (const BlockId block : {0u, 1u})
      left_.channel->send_latest(parameters_of(block, version, buffer));
  }
  EXPECT_EQ(buffer.use_count(), 3) << "one of each block, and that of this test";
  ASSERT_TRUE(run_until([&] { return right_.frames.size() == 2; }));
  for (const FrameHeader& header : right_.frames) EXPECT_EQ(header.version, 1000u);
}

TEST_F(ChannelTest, APeerThatDoesNotReadIsDisconnected) {
  start_left();
  // Each poll writes as much as the socket takes; the other end does not read.
  for (int i = 0; i < 2'000'000 && left_.closed.empty(); ++i) {
    left_.channel->send({{.type = FrameType::kStop, .step = 5}, {}});
    if (i % 1000 == 0) loop_.poll();
    if (loop_.stopped()) loop_.restart();
  }
  ASSERT_EQ(left_.closed.size(), 1u);
  EXPECT_EQ(left_.closed[0].kind, ErrorKind::kDisconnected);
}

TEST_F(ChannelTest, SixteenBitNumbersAreSentAsTheyAre) {
  start_both();
  const auto buffer = std::make_shared<FloatBuffer>(3);
  const std::vector<float> values = {1.0F, -2.5F, 1e-3F};
  std::copy(values.begin(), values.end(), buffer->data());
  Frame frame = block_of(1, buffer, 0, 3);
  frame.header.number_type = NumberType::kBfloat16;
  std::vector<uint16_t> halves(3);
  narrow(NumberType::kBfloat16, values, halves);
  std::vector<uint16_t> got(3);
  auto callbacks = right_.callbacks();
  callbacks.payload_for = [&](const FrameHeader& header) -> Result<std::span<std::byte>> {
    EXPECT_EQ(header.length, 6u);
    EXPECT_EQ(header.number_type, NumberType::kBfloat16);
    return std::as_writable_bytes(std::span(got));
  };
  right_.channel->replace_callbacks(std::move(callbacks));
  left_.channel->send(std::move(frame));
  ASSERT_TRUE(run_until([&] { return right_.frames.size() == 1; }));
  EXPECT_EQ(got, halves);
}

TEST_F(ChannelTest, AFileArrivesWithItsMessage) {
  start_both();
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor from(ends[0]);
  const Descriptor to(ends[1]);
  auto callbacks = right_.callbacks();
  std::vector<bool> files;
  callbacks.on_control = [&](const Control& message) {
    const bool carries = std::get<StepReport>(message).step == 2;
    files.push_back(carries && right_.channel->take_file().open());
    return done();
  };
  right_.channel->replace_callbacks(std::move(callbacks));
  left_.channel->send(report_of(1));
  left_.channel->send(report_of(2), to.get());
  left_.channel->send(report_of(3));
  ASSERT_TRUE(run_until([&] { return files.size() == 3; }));
  EXPECT_TRUE(files[1]);
  EXPECT_FALSE(right_.channel->take_file().open());
}

TEST_F(ChannelTest, TheReasonOfARefusalArrives) {
  start_both();
  left_.channel->send(report_of(1));
  left_.channel->refuse(invalid_input("the-reason"));
  ASSERT_TRUE(run_until([&] { return !right_.closed.empty(); }));
  EXPECT_EQ(right_.controls.size(), 1U) << "what was sent before still arrives";
  EXPECT_EQ(right_.closed[0].kind, ErrorKind::kRefused);
  EXPECT_TRUE(right_.channel->was_refused());
  EXPECT_FALSE(left_.channel->was_refused());
  EXPECT_THAT(right_.closed[0].message, mentions("the-reason"));
  EXPECT_TRUE(left_.closed.empty()) << "the refusing end gets no callback";
}

TEST_F(ChannelTest, ATemporaryRefusalCountsAsADisconnection) {
  start_both();
  left_.channel->refuse(Error{ErrorKind::kNotNow, "worker 3 is here already"});
  ASSERT_TRUE(run_until([&] { return !right_.closed.empty(); }));
  EXPECT_EQ(right_.closed[0].kind, ErrorKind::kDisconnected);
  EXPECT_TRUE(right_.channel->was_refused());
}

TEST_F(ChannelTest, AHeartbeatIsNotDelivered) {
  start_both();
  left_.channel->send({{.type = FrameType::kAlive}, {}});
  left_.channel->send(report_of(1));
  ASSERT_TRUE(run_until([&] { return right_.controls.size() == 1; }));
  EXPECT_TRUE(right_.closed.empty());
  EXPECT_TRUE(right_.frames.empty());
}

TEST_F(ChannelTest, AnErrorFromACallbackIsSentToThePeer) {
  start_both();
  Channel::Callbacks strict = right_.callbacks();
  strict.on_control = [](const Control&) -> Status { return invalid_input("not-like-this"); };
  right_.channel->replace_callbacks(std::move(strict));
  left_.channel->send(report_of(1));
  left_.channel->send(report_of(2));
  ASSERT_TRUE(run_until([&] { return !right_.closed.empty() && !left_.closed.empty(); }));
  EXPECT_EQ(right_.closed[0].message, "not-like-this");
  EXPECT_EQ(left_.closed[0].kind, ErrorKind::kRefused);
  EXPECT_THAT(left_.closed[0].message, mentions("not-like-this"));
  EXPECT_EQ(right_.closed.size(), 1U);
  EXPECT_EQ(left_.closed.size(), 1U);
}

TEST_F(ChannelTest, FramesOfAnotherRunAreRefused) {
  start_both(kRun + 1);
  left_.channel->send(report_of(1));
  ASSERT_TRUE(run_until([&] { return !right_.closed.empty(); }));
  EXPECT_EQ(right_.closed[0].kind, ErrorKind::kInvalidInput);
  EXPECT_TRUE(right_.controls.empty());
}

TEST_F(ChannelTest, GarbageIsRefusedWithTheReason) {
  start_left();
  const std::string garbage =
      "GET / HTTP/1.1\r\nHost: drover\r\nUser-Agent: a browser at the wrong port\r\n\r\n";
  ASSERT_GT(garbage.size(), kHeaderBytes);
  write_bare(garbage.data(), garbage.size());
  ASSERT_TRUE(run_until([&] { return !left_.closed.empty(); }));
  EXPECT_EQ(left_.closed[0].kind, ErrorKind::kInvalidInput);
  ASSERT_TRUE(run_until([&] { return left_.channel->idle(); }));
  EXPECT_EQ(refusal_read_bare(), left_.closed[0].message);
  EXPECT_THAT(left_.closed[0].message, mentions("drover"));
  EXPECT_EQ(left_.closed.size(), 1U);
}

TEST_F(ChannelTest, AnotherProtocolVersionIsNamed) {
  start_left();
  HeaderBytes bytes = encode_header({.run = kRun});
  bytes[4] = std::byte{99};
  write_bare(bytes.data(), bytes.size());
  ASSERT_TRUE(run_until([&] { return !left_.closed.empty() && left_.channel->idle(); }));
  EXPECT_THAT(refusal_read_bare(), mentions(99, kProtocolVersion));
}

TEST_F(ChannelTest, ALengthBeyondTheLimitIsRefusedBeforeAnythingIsAllocated) {
  for (const FrameType type : {FrameType::kControl, FrameType::kBlock, FrameType::kPull}) {
    SCOPED_TRACE(static_cast<int>(type));
    int fds[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    End end;
    end.channel = std::make_shared<Channel>(socket(fds[0]), kRun);
    end.channel->start(end.callbacks());
    const HeaderBytes bytes = encode_header({.type = type, .run = kRun, .length = ~uint32_t{0}});
    ASSERT_EQ(::write(fds[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(run_until([&] { return !end.closed.empty() && end.channel->idle(); }));
    EXPECT_EQ(end.closed[0].kind, ErrorKind::kInvalidInput);
    EXPECT_NE(end.closed[0].message.find(std::to_string(~uint32_t{0})), std::string::npos)
        << end.closed[0].message;
    EXPECT_EQ(end.payloads_asked, 0U);
    ::close(fds[1]);
  }
}

TEST_F(ChannelTest, AnUnexpectedBlockIsRefusedUnread) {
  Channel::Callbacks callbacks = left_.callbacks();
  callbacks.payload_for = [](const FrameHeader&) -> Result<std::span<std::byte>> {
    return invalid_input("no such block here");
  };
  left_.channel->start(std::move(callbacks));
  const HeaderBytes bytes = encode_header({.type = FrameType::kBlock, .run = kRun, .length = 400});
  write_bare(bytes.data(), bytes.size());
  ASSERT_TRUE(run_until([&] { return !left_.closed.empty() && left_.channel->idle(); }));
  EXPECT_EQ(refusal_read_bare(), "no such block here");
  EXPECT_TRUE(left_.frames.empty());
}

TEST_F(ChannelTest, FramesWithoutACallbackAreRefused) {
  for (const FrameType type : {FrameType::kControl, FrameType::kBlock, FrameType::kStop}) {
    SCOPED_TRACE(static_cast<int>(type));
    int fds[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    auto channel = std::make_shared<Channel>(socket(fds[0]), kRun);
    std::optional<Error> closed;
    Channel::Callbacks callbacks;
    callbacks.on_closed = [&](const Error& why) { closed = why; };
    channel->start(std::move(callbacks));
    const std::string ready = encode_control(Ready{});
    std::string bytes;
    const uint32_t length = type == FrameType::kControl ? static_cast<uint32_t>(ready.size())
                            : type == FrameType::kBlock ? 4
                                                        : 0;
    const HeaderBytes header = encode_header({.type = type, .run = kRun, .length = length});
    bytes.append(reinterpret_cast<const char*>(header.data()), header.size());
    bytes += type == FrameType::kControl ? ready : std::string(length, '\0');
    ASSERT_EQ(::write(fds[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(run_until([&] { return closed.has_value(); }));
    EXPECT_EQ(closed->kind, ErrorKind::kInvalidInput) << closed->message;
    ::close(fds[1]);
  }
}

TEST_F(ChannelTest, AControlMessageThatCannotBeReadClosesTheChannel) {
  start_left();
  const std::string nonsense(40, '\xff');
  const HeaderBytes header = encode_header({.run = kRun, .length = 40});
  write_bare(header.data(), header.size());
  write_bare(nonsense.data(), nonsense.size());
  ASSERT_TRUE(run_until([&] { return !left_.closed.empty(); }));
  EXPECT_EQ(left_.closed[0].kind, ErrorKind::kInvalidInput);
  EXPECT_TRUE(left_.controls.empty());
}

TEST_F(ChannelTest, AnEndAtAnyByteOfAFrameIsAnErrorAndNeverAFrame) {
  const std::string payload = encode_control(StepReport{.step = 3, .samples = 4});
  const HeaderBytes header =
      encode_header({.run = kRun, .length = static_cast<uint32_t>(payload.size())});
  std::string whole(reinterpret_cast<const char*>(header.data()), header.size());
  whole += payload;
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    int fds[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    End end;
    end.channel = std::make_shared<Channel>(socket(fds[0]), kRun);
    end.channel->start(end.callbacks());
    ASSERT_EQ(::write(fds[1], whole.data(), cut), static_cast<ssize_t>(cut));
    ::close(fds[1]);
    ASSERT_TRUE(run_until([&] { return !end.closed.empty(); })) << cut;
    EXPECT_EQ(end.closed[0].kind, ErrorKind::kDisconnected) << cut;
    EXPECT_TRUE(end.controls.empty()) << cut;
  }
}

TEST_F(ChannelTest, NothingIsCalledAfterClose) {
  start_both();
  Channel::Callbacks once = right_.callbacks();
  once.on_control = [&](const Control&) {
    right_.order.emplace_back("once");
    right_.channel->close();
    return done();
  };
  right_.channel->replace_callbacks(std::move(once));
  for (Step step = 0; step < 10; ++step) left_.channel->send(report_of(step));
  ASSERT_TRUE(run_until([&] { return !left_.closed.empty(); }));
  loop_.restart();
  loop_.poll();
  EXPECT_EQ(right_.order, std::vector<std::string>{"once"});
  EXPECT_TRUE(right_.closed.empty());
  left_.channel->send(report_of(11));  // harmless
  EXPECT_TRUE(left_.channel->idle());
}

TEST_F(ChannelTest, SendWithNextWaitsForTheNextFrameAndKeepsTheOrder) {
  start_both();
  left_.channel->send_with_next(report_of(1));
  loop_.poll();
  EXPECT_TRUE(right_.controls.empty());
  left_.channel->send(report_of(2));
  ASSERT_TRUE(run_until([&] { return right_.controls.size() == 2; }));
  EXPECT_EQ(std::get<StepReport>(right_.controls[0]).step, 1U);
  EXPECT_EQ(std::get<StepReport>(right_.controls[1]).step, 2U);
}

TEST_F(ChannelTest, AHeartbeatFlushesFramesOfSendWithNext) {
  start_both();
  Step step = 0;
  ASSERT_TRUE(run_until([&] {  // takes one beat
    left_.channel->send_with_next(report_of(++step));
    return !right_.controls.empty();
  }));
  EXPECT_EQ(std::get<StepReport>(right_.controls[0]).step, 1U);
}

TEST_F(ChannelTest, CloseWhenSentDeliversWhatIsQueuedFirst) {
  start_both();
  const auto buffer = std::make_shared<FloatBuffer>(kBlockFloats);
  for (Step step = 0; step < 40; ++step) {
    left_.channel->send(block_of(step, buffer, 0, kBlockFloats));  // 10 MB: not in one write
  }
  left_.channel->send(report_of(40));
  left_.channel->close_when_sent();
  left_.channel->send(report_of(41));  // too late
  ASSERT_TRUE(run_until([&] { return !right_.closed.empty(); }));
  EXPECT_EQ(right_.frames.size(), 40U);
  EXPECT_EQ(right_.controls.size(), 1U);
  EXPECT_TRUE(left_.closed.empty());
  EXPECT_EQ(buffer.use_count(), 1);
}

TEST_F(ChannelTest, FloatsUnderWayAreReleasedWhenThePeerVanishes) {
  start_left();
  const auto buffer = std::make_shared<FloatBuffer>(kBlockFloats);
  for (Step step = 0; step < 40; ++step) {
    left_.channel->send(block_of(step, buffer, 0, kBlockFloats));
  }
  loop_.poll();  // the socket is full now
  EXPECT_FALSE(left_.channel->idle());
  ::close(std::exchange(right_fd_, -1));
  ASSERT_TRUE(run_until([&] { return !left_.closed.empty() && left_.channel->idle(); }));
  EXPECT_EQ(left_.closed.size(), 1U);
  EXPECT_EQ(buffer.use_count(), 1);
}

// Both ends on one loop, with a port each.
class MessageChannelTest : public ChannelTest {
 protected:
  // The channels must be closed before the ports are destroyed.
  ~MessageChannelTest() override {
    left_.channel->close();
    right_.channel->close();
  }

  void start() {
    start_both();
    left_.channel->carry_floats_by(left_courier_, {1, 7});
    right_.channel->carry_floats_by(right_courier_, {0, 7});
    for (size_t i = 0; i < buffer_->size(); ++i) buffer_->span()[i] = static_cast<float>(i) * 0.5F;
  }

  TestWorld world_;
  TestPort left_port_{world_, 0};
  TestPort right_port_{world_, 1};
  std::shared_ptr<MessageCourier> left_courier_ =
      std::make_shared<MessageCourier>(loop_.get_executor(), left_port_);
  std::shared_ptr<MessageCourier> right_courier_ =
      std::make_shared<MessageCourier>(loop_.get_executor(), right_port_);
  const SharedBuffer buffer_ = std::make_shared<FloatBuffer>(4 * kBlockFloats);
};

TEST_F(MessageChannelTest, FloatsTravelAsMessagesAndAllElseOnTheConnection) {
  start();
  left_.channel->send(report_of(1));
  left_.channel->send(block_of(2, buffer_, 16, 4));
  left_.channel->send({{.type = FrameType::kPull, .step = 3}, {}});
  left_.channel->send(block_of(4, buffer_, kBlockFloats, kBlockFloats));
  left_.channel->send(block_of(5, buffer_, 0, 0));  // an offer withdrawn
  ASSERT_TRUE(run_until([&] { return !world_.messages.empty(); }));
  EXPECT_EQ(world_.messages.front()->bytes.data(),
            std::as_bytes(buffer_->span()).data() + 16 * sizeof(float));
  ASSERT_TRUE(run_until([&] { return right_.order.size() == 5 && left_.floats_sent == 3; }));
  EXPECT_EQ(right_.order,
            (std::vector<std::string>{"report 1", "frame 2", "frame 3", "frame 4", "frame 5"}));
  EXPECT_EQ(right_.payloads[0], (std::vector<float>{8.0F, 8.5F, 9.0F, 9.5F}));
  EXPECT_EQ(std::memcmp(right_.payloads[1].data(), buffer_->data() + kBlockFloats,
                        kBlockFloats * sizeof(float)),
            0);
  EXPECT_TRUE(left_.channel->idle());
  EXPECT_EQ(left_port_.under_way() + right_port_.under_way(), 0u);
}

TEST_F(MessageChannelTest, BothWaysAtOnce) {
  start();
  constexpr Step kEach = 200;
  for (Step step = 0; step < kEach; ++step) {
    left_.channel->send(block_of(step, buffer_, step, 100));
    right_.channel->send(block_of(step, buffer_, 2 * step, 50));
  }
  ASSERT_TRUE(run_until([&] {
    return right_.frames.size() == kEach && left_.frames.size() == kEach &&
           left_.floats_sent == kEach && right_.floats_sent == kEach;
  }));
  for (Step step = 0; step < kEach; ++step) {
    ASSERT_EQ(right_.frames[step].step, step);
    ASSERT_EQ(right_.payloads[step].front(), static_cast<float>(step) * 0.5F);
    ASSERT_EQ(left_.payloads[step].back(), static_cast<float>(2 * step + 49) * 0.5F);
  }
}

TEST_F(MessageChannelTest, SixteenBitNumbersAreSentAsMessages) {
  start();
  Frame frame = block_of(1, buffer_, 0, 8);
  frame.header.number_type = NumberType::kBfloat16;
  left_.channel->send(std::move(frame));
  ASSERT_TRUE(run_until([&] { return right_.frames.size() == 1 && left_.floats_sent == 1; }));
  EXPECT_EQ(right_.frames[0].length, 16u);
}

TEST_F(MessageChannelTest, FloatsAreNotReleasedBeforeTheyAreReceived) {
  start();
  world_.delivers = false;
  left_.channel->send(block_of(1, buffer_, 0, 8));
  ASSERT_TRUE(run_until([&] { return right_.payloads_asked == 1; }));
  ASSERT_TRUE(run_until([&] { return right_port_.looks > 50; }));
  EXPECT_EQ(left_.floats_sent, 0u);
  EXPECT_TRUE(right_.frames.empty());
  world_.delivers = true;
  ASSERT_TRUE(run_until([&] { return right_.frames.size() == 1 && left_.floats_sent == 1; }));
}

TEST_F(MessageChannelTest, AClosedReceiverIsNotWrittenToAndFloatsUnderWayStayAllocated) {
  start();
  world_.delivers = false;
  left_.channel->send(block_of(1, buffer_, 0, 8));
  ASSERT_TRUE(run_until([&] { return right_.payloads_asked == 1; }));
  right_.channel->close();
  EXPECT_EQ(right_port_.under_way(), 0u);
  ASSERT_TRUE(run_until([&] { return left_.closed.size() == 1; })) << "its socket is closed";
  EXPECT_EQ(left_port_.under_way(), 0u);
  EXPECT_EQ(left_port_.kept.size(), 1u);
  EXPECT_EQ(left_.floats_sent, 0u);
  EXPECT_GT(buffer_.use_count(), 1) << "a message under way may still be read";
}

TEST_F(MessageChannelTest, AMessageOfAnotherSizeThanItsHeaderSaysClosesTheChannel) {
  start();
  const std::array<std::byte, 3> stray{};
  ASSERT_TRUE(left_port_.begin_send(stray, {1, 7}).ok());
  left_.channel->send(block_of(1, buffer_, 0, 8));
  ASSERT_TRUE(run_until([&] { return right_.closed.size() == 1; }));
  EXPECT_TRUE(right_.frames.empty());
}

TEST_F(MessageChannelTest, APortThatFailsClosesTheChannel) {
  start();
  left_port_.trouble = "port-trouble";
  left_.channel->send(block_of(1, buffer_, 0, 8));
  ASSERT_TRUE(run_until([&] { return left_.closed.size() == 1; }));
  EXPECT_EQ(left_.closed[0].message, "port-trouble");
}

}  // namespace
}  // namespace drover
