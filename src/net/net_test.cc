// Addresses, listening, connecting and moving whole buffers, on one event loop over loopback.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "net/connection.h"
#include "net/endpoint.h"
#include "net/socket.h"
#include "net/test_loop.h"

namespace drover {
namespace {

// --- addresses

TEST(Endpoint, TextParsesToTheSameEndpoint) {
  for (const std::string text : {"unix:drover-1-coordinator", "unix:x", "tcp:127.0.0.1:7000",
                                 "tcp:0.0.0.0:0", "tcp:[::1]:65535"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
    EXPECT_EQ(to_text(endpoint.value().address), text);
    EXPECT_EQ(endpoint.value().local, text.starts_with("unix:"));
  }
}

TEST(Endpoint, AcceptsNamesUpToTheMaximumLength) {
  for (size_t length = 1; length <= 106; ++length) {
    const std::string text = "unix:" + std::string(length, 'n');
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint.ok()) << length;
    EXPECT_EQ(to_text(endpoint.value().address), text);
  }
}

TEST(Endpoint, ErrorsNameTheInvalidPart) {
  const std::vector<std::string> neither = {"unix:", "tcp:"};
  const std::vector<std::string> length = {"unix:", "1", "106"};
  const std::vector<std::string> form = {"tcp:HOST:PORT", "tcp:127.0.0.1:7000"};
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong = {
      {"", neither},
      {"127.0.0.1:80", neither},
      {"unix:", length},
      {"unix:" + std::string(107, 'n'), length},
      {"tcp:127.0.0.1", form},
      {"tcp:127.0.0.1:", form},
      {"tcp:127.0.0.1:65536", form},
      {"tcp:127.0.0.1:-1", form},
      {"tcp:127.0.0.1:80x", form},
      {"tcp::80", form},
      {"tcp:localhost:80", form},
      {"tcp:[::1:80", form},
  };
  for (const auto& [text, values] : wrong) {
    SCOPED_TRACE(text);
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint.ok());
    EXPECT_EQ(endpoint.error().kind, ErrorKind::kInvalidInput);
    for (const std::string& value : values) EXPECT_THAT(endpoint.error().message, mentions(value));
    EXPECT_NE(endpoint.error().message.find("'" + text + "'"), std::string::npos)
        << endpoint.error().message;
  }
}

TEST(Location, HasTheHostAndWhetherItIsNear) {
  const auto of = [](const std::string& address) {
    return location_of(parse_endpoint(address).value().address);
  };
  EXPECT_TRUE(of("unix:x").near);
  EXPECT_TRUE(of("tcp:127.0.0.1:5").near);
  EXPECT_TRUE(of("tcp:127.3.2.1:5").near);
  EXPECT_TRUE(of("tcp:[::1]:5").near);
  EXPECT_TRUE(of("tcp:[::ffff:127.0.0.1]:5").near);
  EXPECT_FALSE(of("tcp:0.0.0.0:5").near) << "all of this machine's addresses";
  EXPECT_FALSE(of("tcp:[::]:5").near);
  EXPECT_FALSE(of("tcp:192.0.2.1:5").near);
  EXPECT_EQ(of("tcp:192.0.2.1:5").host, "192.0.2.1") << "the port does not matter";
  EXPECT_EQ(of("tcp:[::ffff:192.0.2.1]:5").host, "192.0.2.1");
  EXPECT_EQ(of("tcp:[2001:db8:1:2::3]:5").host, of("tcp:[2001:db8:1:2:ffff::4]:6").host);
  EXPECT_NE(of("tcp:[2001:db8:1:2::3]:5").host, of("tcp:[2001:db8:1:3::3]:5").host);
}

// --- sockets

std::string own_name(const std::string& what) {
  return "unix:drover-net-test-" + std::to_string(::getpid()) + "-" + what;
}

class NetTest : public LoopTest {
 protected:
  std::unique_ptr<Listener> listen(const std::string& address) {
    auto listener = Listener::open(loop_, address);
    EXPECT_TRUE(listener.ok()) << listener.error().message;
    return std::move(listener).value();
  }

  // Both ends of a connection to `address`.
  struct Pair {
    std::shared_ptr<Connection> accepted;
    std::shared_ptr<Connection> connected;
  };
  Pair connect(const std::string& address) {
    const auto listener = listen(address);
    Pair pair;
    listener->start(
        [&](Socket socket) { pair.accepted = std::make_shared<Connection>(std::move(socket)); });
    auto socket = connect_socket(loop_, listener->address(), "a test");
    EXPECT_TRUE(socket.ok()) << socket.error().message;
    pair.connected = std::make_shared<Connection>(std::move(socket).value());
    EXPECT_TRUE(run_until([&] { return pair.accepted != nullptr; }));
    return pair;
  }
};

std::vector<std::byte> pattern(size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + seed));
  return bytes;
}

TEST_F(NetTest, APortInUseIsAnErrorThatSaysSo) {
  const auto first = listen("tcp:127.0.0.1:0");
  const std::string address = first->address();
  EXPECT_NE(address, "tcp:127.0.0.1:0") << "it has the bound port";
  const auto second = Listener::open(loop_, address);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error(), is_error(ErrorKind::kSystem, address, "--port"));
  EXPECT_EQ(second.error().os_error, EADDRINUSE);
}

TEST_F(NetTest, AUnixNameInUseIsAnErrorUntilItIsClosed) {
  const std::string name = own_name("twice");
  {
    const auto first = listen(name);
    EXPECT_EQ(first->address(), name);
    const auto second = Listener::open(loop_, name);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error(), is_error(ErrorKind::kSystem, name));
    EXPECT_EQ(second.error().os_error, EADDRINUSE);
  }
  EXPECT_TRUE(Listener::open(loop_, name).ok());
}

TEST_F(NetTest, AnAddressOfAnotherMachineIsAnError) {
  const auto listener = Listener::open(loop_, "tcp:192.0.2.1:0");  // for documentation (RFC 5737)
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.error(), is_error(ErrorKind::kSystem, "tcp:192.0.2.1:0"));
  EXPECT_EQ(listener.error().os_error, EADDRNOTAVAIL);
}

TEST_F(NetTest, AFailedConnectionNamesThePeer) {
  const auto socket = connect_socket(loop_, own_name("unused"), "shard 3");
  ASSERT_FALSE(socket.ok());
  EXPECT_THAT(socket.error(), is_error(ErrorKind::kDisconnected, "shard 3", own_name("unused")));
  EXPECT_FALSE(connect_socket(loop_, "nonsense", "shard 3").ok());
}

TEST_F(NetTest, DialingGivesAConnectionOrAnError) {
  for (const std::string& address : {own_name("dialled"), std::string("tcp:127.0.0.1:0")}) {
    SCOPED_TRACE(address);
    auto listener = listen(address);
    const std::string reached = listener->address();
    bool accepted = false;
    listener->start([&](const Socket&) { accepted = true; });
    std::optional<Result<Socket>> result;
    const auto keep = [&](Result<Socket> each) { result.emplace(std::move(each)); };
    const Dialing first(loop_, reached, "shard 3", keep);
    EXPECT_FALSE(result) << "not before the loop runs";
    ASSERT_TRUE(run_until([&] { return result && accepted; }));
    EXPECT_TRUE(result->ok());

    listener.reset();
    result.reset();
    const Dialing second(loop_, reached, "shard 3", keep);
    ASSERT_TRUE(run_until([&] { return result.has_value(); }));
    ASSERT_FALSE(result->ok());
    EXPECT_THAT(result->error(), is_error(ErrorKind::kDisconnected, "shard 3", reached));
  }
}

TEST_F(NetTest, AHostThatDoesNotAnswerDoesNotBlockTheLoop) {
  const Unanswered host(loop_);
  std::optional<Dialing> dialing;
  bool called = false;
  dialing.emplace(loop_, host.address(), "shard 3", [&](const Result<Socket>&) { called = true; });
  bool continued = false;
  boost::asio::post(loop_, [&] {
    continued = true;
    dialing.reset();
  });
  loop_.run();  // it returns, since the attempt was cancelled
  EXPECT_TRUE(continued);
  EXPECT_FALSE(called);
}

TEST_F(NetTest, AListeningSocketCanBePassedToAChild) {
  int fd = -1;
  std::string address;
  {
    const auto first = listen(own_name("handed-on"));
    address = first->address();
    fd = first->duplicate().value();
  }
  const auto second = Listener::adopt(loop_, fd);
  EXPECT_EQ(second->address(), address);
  bool accepted = false;
  second->start([&](const Socket&) { accepted = true; });
  ASSERT_TRUE(connect_socket(loop_, address, "the second").ok());
  EXPECT_TRUE(run_until([&] { return accepted; }));
}

TEST_F(NetTest, ProcessesOfTheSameUserAreAccepted) {
  const Pair pair = connect(own_name("same-user"));
  EXPECT_NE(pair.accepted, nullptr);
}

TEST_F(NetTest, LargeBuffersAreSentInBothDirectionsAtOnce) {
  for (const std::string& address : {own_name("large"), std::string("tcp:127.0.0.1:0")}) {
    SCOPED_TRACE(address);
    const Pair pair = connect(address);
    const auto there = pattern(3'000'000, 1);
    const auto back = pattern(3'000'001, 2);
    std::vector<std::byte> got_there(there.size());
    std::vector<std::byte> got_back(back.size());
    int finished = 0;
    const auto count = [&](const Status& status) {
      EXPECT_TRUE(status.ok());
      ++finished;
    };
    const auto count_now = [&](bool now) { finished += now ? 1 : 0; };
    count_now(pair.accepted->read(got_there, count));
    count_now(pair.connected->read(got_back, count));
    // In parts of all sizes, some empty.
    const std::span all(there);
    count_now(pair.connected->write(
        {boost::asio::buffer(all.data(), 64), boost::asio::buffer(all.data(), 0),
         boost::asio::buffer(all.data() + 64, 2'000'000),
         boost::asio::buffer(all.data() + 2'000'064, 999'936)},
        count));
    count_now(pair.accepted->write({boost::asio::buffer(back.data(), back.size())}, count));
    ASSERT_TRUE(run_until([&] { return finished == 4; }));
    EXPECT_EQ(got_there, there);
    EXPECT_EQ(got_back, back);
  }
}

TEST_F(NetTest, MorePartsThanOneSystemCallAcceptsArriveInOrder) {
  const Pair pair = connect(own_name("parts"));
  const auto bytes = pattern(20'000, 3);
  std::vector<boost::asio::const_buffer> parts;
  for (size_t at = 0; at < bytes.size(); at += 4) parts.emplace_back(bytes.data() + at, 4);
  std::vector<std::byte> got(bytes.size());
  bool finished = false;
  pair.accepted->read(got, [&](const Status& status) { finished = status.ok(); });
  pair.connected->write(parts, [](const Status& status) { EXPECT_TRUE(status.ok()); });
  ASSERT_TRUE(run_until([&] { return finished; }));
  EXPECT_EQ(got, bytes);
}

TEST_F(NetTest, AnEndBeforeTheBufferIsFullIsAnError) {
  const Pair pair = connect(own_name("end"));
  std::vector<std::byte> got(100);
  std::optional<Status> read;
  pair.accepted->read(got, [&](const Status& status) { read = status; });
  const auto bytes = pattern(99, 4);
  EXPECT_TRUE(pair.connected->write({boost::asio::buffer(bytes)}, [](const Status&) {}));
  EXPECT_FALSE(read.has_value());
  pair.connected->close();
  ASSERT_TRUE(run_until([&] { return read.has_value(); }));
  ASSERT_FALSE(read->ok());
  EXPECT_EQ(read->error().kind, ErrorKind::kDisconnected);
}

TEST_F(NetTest, AvailableBytesAreReadAtOnceAndInOrder) {
  const Pair pair = connect(own_name("ahead"));
  const auto bytes = pattern(1000, 5);
  ASSERT_TRUE(pair.connected->write({boost::asio::buffer(bytes)}, nullptr));
  const auto never = [](const Status&) { ADD_FAILURE(); };
  std::vector<std::byte> got(bytes.size());
  for (size_t at = 0; at < got.size(); at += 100)
    ASSERT_TRUE(pair.accepted->read(std::span(got).subspan(at, 100), never)) << at;
  EXPECT_EQ(got, bytes);
}

TEST_F(NetTest, ADescriptorIsSentWithTheBytes) {
  const Pair pair = connect(own_name("file"));
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const auto bytes = pattern(10, 6);
  ASSERT_TRUE(pair.connected->write({boost::asio::buffer(bytes)}, nullptr, to.get()));
  to = Descriptor();
  std::vector<std::byte> got(bytes.size());
  ASSERT_TRUE(pair.accepted->read(got, nullptr));
  EXPECT_EQ(got, bytes);
  const Descriptor received = pair.accepted->take_file();
  ASSERT_TRUE(received.open());
  EXPECT_FALSE(pair.accepted->take_file().open()) << "only once";
  ASSERT_EQ(::write(received.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(from.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(NetTest, ClosingEndsPendingReads) {
  const Pair pair = connect("tcp:127.0.0.1:0");
  std::vector<std::byte> got(100);
  std::optional<Status> read;
  pair.accepted->read(got, [&](const Status& status) { read = status; });
  pair.accepted->close();
  EXPECT_FALSE(pair.accepted->is_open());
  ASSERT_TRUE(run_until([&] { return read.has_value(); }));
  EXPECT_FALSE(read->ok());
  pair.accepted->close();  // a second time has no effect
}

// A callback that owns the connection is owned by the pending wait. Both are destroyed with the
// loop.
TEST(Connection, IsDestroyedWithItsLoop) {
  struct Reader {
    std::shared_ptr<Connection> connection;
    std::array<std::byte, 10> into{};
  };
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Descriptor other(ends[1]);
  std::weak_ptr<Reader> seen;
  {
    boost::asio::io_context loop{1};
    Socket socket(loop, SocketProtocol(AF_UNIX, 0), ends[0]);
    const auto reader = std::make_shared<Reader>();
    reader->connection = std::make_shared<Connection>(std::move(socket));
    EXPECT_FALSE(reader->connection->read(reader->into, [reader](const Status&) {}));
    seen = reader;
  }
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace drover
