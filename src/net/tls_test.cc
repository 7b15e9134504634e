// TLS between real sockets on one event loop: members connect, other peers are refused, and errors
// say what to do.
#include "net/tls.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "net/connection.h"
#include "net/socket.h"
#include "net/test_loop.h"
#include "net/tls_keys.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

namespace fs = std::filesystem;

MATCHER(HasDate, "") { return std::regex_search(arg, std::regex(R"(\b20\d{2}-\d{2}-\d{2}\b)")); }

class TlsTest : public LoopTest {
 protected:
  TlsTest() {
    std::string name = fs::temp_directory_path() / "drover-tls-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~TlsTest() override { fs::remove_all(folder_); }

  std::string keys(const std::string& name, const KeyRequest& request = {}) {
    const std::string into = folder_ / name;
    const Status made = make_keys(into, request);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return into;
  }
  std::shared_ptr<const Tls> tls(const std::string& name) {
    auto loaded = Tls::load(keys(name));
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return std::move(loaded).value();
  }

  static std::shared_ptr<Connection> open(Socket socket, const Tls* tls, Tls::Side side) {
    const int fd = socket.native_handle();
    return std::make_shared<Connection>(std::move(socket), tls ? tls->session(side, fd) : nullptr);
  }

  // Both ends of a connection; null: without TLS.
  void connect(const Tls* accepting, const Tls* connecting) {
    auto listener = Listener::open(loop_, "tcp:127.0.0.1:0");
    ASSERT_TRUE(listener.ok());
    listener.value()->start([&](Socket socket) {
      accepted_ = open(std::move(socket), accepting, Tls::Side::kAccepts);
    });
    auto socket = connect_socket(loop_, listener.value()->address(), "a test");
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    connected_ = open(std::move(socket).value(), connecting, Tls::Side::kConnects);
    ASSERT_TRUE(run_until([&] { return accepted_ != nullptr; }));
  }

  // The error of each end of a connection on which both send.
  struct Ends {
    std::string accepted;
    std::string connected;
  };
  Ends talk() {
    std::vector<std::byte> out(64, std::byte{7});
    std::vector<std::byte> in_accepted(64);
    std::vector<std::byte> in_connected(64);
    std::optional<std::string> accepted;
    std::optional<std::string> connected;
    const auto note = [](std::optional<std::string>& into, Connection& end,
                         const Connection::Done& then) {
      return [&into, &end, then](const Status& status) {
        if (!into) into = status ? "" : status.error().message;
        if (!status) end.close();
        if (then) then(status);
      };
    };
    const auto begin = [&](Connection& end, std::vector<std::byte>& in,
                           std::optional<std::string>& said) {
      if (end.read(in, note(said, end, nullptr))) said = "";
      const std::vector<boost::asio::const_buffer> parts{boost::asio::buffer(out)};
      end.write(parts, [&](const Status& status) {
        if (!status && !said) said = status.error().message;
        if (!status) end.close();
      });
    };
    begin(*connected_, in_connected, connected);
    begin(*accepted_, in_accepted, accepted);
    EXPECT_TRUE(run_until([&] { return accepted && connected; }));
    return {accepted.value_or("nothing"), connected.value_or("nothing")};
  }

  fs::path folder_;
  std::shared_ptr<Connection> accepted_;
  std::shared_ptr<Connection> connected_;
};

TEST_F(TlsTest, MembersOfOneAuthorityCanConnect) {
  const auto ours = tls("a");
  connect(ours.get(), ours.get());
  const Ends ends = talk();
  EXPECT_EQ(ends.accepted, "");
  EXPECT_EQ(ends.connected, "");
}

// Both directions at once, in parts of all sizes.
TEST_F(TlsTest, EverythingArrivesInOrder) {
  const auto ours = tls("a");
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    accepted_.reset();
    connect(ours.get(), ours.get());
    int finished = 0;
    const auto count = [&](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.error().message;
      ++finished;
    };
    std::array<std::vector<std::byte>, 2> sent;
    std::array<std::vector<std::byte>, 2> got;
    const std::array<Connection*, 2> ends{connected_.get(), accepted_.get()};
    for (size_t i = 0; i < 2; ++i) {
      sent.at(i).resize(3'000'000 + random() % 100'000);
      for (std::byte& byte : sent.at(i)) byte = static_cast<std::byte>(random());
      got.at(i).resize(sent.at(i).size());
      finished += ends.at(1 - i)->read(got.at(i), count) ? 1 : 0;
    }
    for (size_t i = 0; i < 2; ++i) {
      std::vector<boost::asio::const_buffer> parts;
      for (size_t at = 0; at < sent.at(i).size();) {
        const size_t most = random() % 3 == 0 ? 200'000 : 100;
        const size_t size = std::min<size_t>(random() % most, sent.at(i).size() - at);
        parts.emplace_back(sent.at(i).data() + at, size);
        at += size;
      }
      finished += ends.at(i)->write(parts, count) ? 1 : 0;
    }
    ASSERT_TRUE(run_until([&] { return finished == 4; }));
    EXPECT_EQ(got, sent);
  }
}

TEST_F(TlsTest, TheTrafficIsEncrypted) {
  const auto ours = tls("a");
  auto listener = Listener::open(loop_, "tcp:127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  std::optional<Socket> bare;
  listener.value()->start([&](Socket socket) { bare = std::move(socket); });
  auto socket = connect_socket(loop_, listener.value()->address(), "a test");
  ASSERT_TRUE(socket.ok());
  connected_ = open(std::move(socket).value(), ours.get(), Tls::Side::kConnects);
  const std::string secret = "all the parameters";
  connected_->write({boost::asio::buffer(secret)}, [](const Status&) {});
  ASSERT_TRUE(run_until([&] { return bare.has_value(); }));
  std::string seen(4096, '\0');
  seen.resize(bare->receive(boost::asio::buffer(seen)));
  EXPECT_GT(seen.size(), 100U) << "a handshake";
  EXPECT_EQ(seen.find(secret), std::string::npos);
}

TEST_F(TlsTest, AnEndOfTheStreamIsReportedAsWithoutTls) {
  const auto ours = tls("a");
  connect(ours.get(), ours.get());
  ASSERT_EQ(talk().accepted, "");
  std::vector<std::byte> more(10);
  std::optional<Status> read;
  accepted_->read(more, [&](const Status& status) { read = status; });
  connected_->close();
  ASSERT_TRUE(run_until([&] { return read.has_value(); }));
  ASSERT_FALSE(read->ok());
  EXPECT_EQ(read->error().kind, ErrorKind::kDisconnected);
}

TEST_F(TlsTest, AnotherAuthorityIsRefusedAndBothEndsReportIt) {
  const auto ours = tls("a");
  const auto theirs = tls("b");
  connect(ours.get(), theirs.get());
  const Ends ends = talk();
  EXPECT_THAT(ends.connected, AllOf(mentions("ca.pem", "drover keys make"), Not(HasDate())));
  EXPECT_THAT(ends.accepted, AllOf(mentions("drover keys make"), Not(HasDate())));
}

TEST_F(TlsTest, APeerWithoutTlsIsRecognised) {
  const auto ours = tls("a");
  connect(ours.get(), nullptr);
  EXPECT_THAT(talk().accepted, AllOf(mentions("--tls"), Not(mentions("drover keys make"))));
  accepted_.reset();
  connect(nullptr, ours.get());
  EXPECT_THAT(talk().connected, AllOf(mentions("--tls"), Not(mentions("drover keys make"))));
}

TEST_F(TlsTest, RandomBytesEndTheConnectionAndNothingElse) {
  const auto ours = tls("a");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    accepted_.reset();
    connect(ours.get(), nullptr);
    std::vector<std::byte> noise(1 + random() % 2000);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    // Sometimes with the first bytes of a handshake.
    if (random() % 2 == 0 && noise.size() > 5) {
      noise[0] = std::byte{0x16};
      noise[1] = std::byte{0x03};
      noise[2] = std::byte{0x01};
    }
    std::vector<std::byte> in(64);
    std::optional<Status> read;
    accepted_->read(in, [&](const Status& status) { read = status; });
    connected_->write({boost::asio::buffer(noise)}, [](const Status&) {});
    connected_->close();
    ASSERT_TRUE(run_until([&] { return read.has_value(); }));
    EXPECT_FALSE(read->ok());
  }
}

// --- keys

TEST_F(TlsTest, ReadKeysReturnsTheContentOfTheFiles) {
  const std::string into = keys("a", {.hosts = {"node-1.example", "192.0.2.7", "::1"}, .days = 3});
  const auto info = read_keys(into);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info.value().hosts, (std::vector<std::string>{"node-1.example", "192.0.2.7", "::1"}));
  EXPECT_EQ(info.value().fingerprint.size(), 32 * 3 - 1);
  EXPECT_NE(info.value().fingerprint, info.value().authority);
  EXPECT_FALSE(info.value().expired);
  EXPECT_FALSE(info.value().others_can_read);
  struct stat status {};
  ASSERT_EQ(::stat((into + "/key.pem").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  ::chmod((into + "/key.pem").c_str(), 0644);
  EXPECT_TRUE(read_keys(into).value().others_can_read);
}

TEST_F(TlsTest, KeysAreNotOverwritten) {
  const std::string into = keys("a");
  const std::string before = read_keys(into).value().fingerprint;
  EXPECT_FALSE(make_keys(into, {}).ok());
  EXPECT_EQ(read_keys(into).value().fingerprint, before);
}

TEST_F(TlsTest, KeysThatDoNotMatchAreAnError) {
  const std::string a = keys("a");
  const std::string b = keys("b");
  const auto overwrite = fs::copy_options::overwrite_existing;
  fs::copy_file(b + "/key.pem", a + "/key.pem", overwrite);
  ASSERT_FALSE(read_keys(a).ok());
  const auto loaded = Tls::load(a);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error(), is_error(ErrorKind::kInvalidInput, a + "/key.pem"));
  fs::copy_file(b + "/cert.pem", a + "/cert.pem", overwrite);
  ASSERT_FALSE(read_keys(a).ok());
  EXPECT_THAT(read_keys(a).error(), is_error(ErrorKind::kInvalidInput, a, "cert.pem", "ca.pem"));
}

TEST_F(TlsTest, MissingAndDamagedFilesAreNamed) {
  for (const char* name : {"ca.pem", "cert.pem", "key.pem"}) {
    SCOPED_TRACE(name);
    const std::string into = keys(std::string("with-bad-") + name);
    std::ofstream(into + "/" + name) << "nonsense";
    const std::string path = into + "/" + name;
    EXPECT_THAT(Tls::load(into).error(), is_error(ErrorKind::kInvalidInput, path));
    fs::remove(path);
    EXPECT_THAT(Tls::load(into).error(),
                is_error(ErrorKind::kInvalidInput, path, std::strerror(ENOENT)));
    EXPECT_THAT(read_keys(into).error(), is_error(ErrorKind::kInvalidInput, path));
  }
}

TEST_F(TlsTest, AnExpiredCertificateIsAnErrorThatSaysWhatToDo) {
  const auto loaded = Tls::load(keys("old", {.hosts = {}, .days = -1}));
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error(), is_error(ErrorKind::kInvalidInput, "cert.pem", "drover keys make"));
  EXPECT_THAT(loaded.error().message, HasDate());
}

TEST_F(TlsTest, AnInvalidNameIsNotAHost) {
  EXPECT_FALSE(make_keys(folder_ / "x", {.hosts = {"a,IP:1.2.3.4"}}).ok());
  EXPECT_FALSE(make_keys(folder_ / "x", {.hosts = {""}}).ok());
}

TEST(MayListen, NeedsTlsOrInsecureForAddressesThatOthersReach) {
  for (const char* near : {"unix:x", "tcp:127.0.0.1:0", "tcp:[::1]:7000"})
    EXPECT_TRUE(may_listen(near, false, false).ok()) << near;
  for (const char* far : {"tcp:0.0.0.0:0", "tcp:192.0.2.1:7000", "tcp:[::]:0"}) {
    const Status refused = may_listen(far, false, false);
    ASSERT_FALSE(refused.ok()) << far;
    for (const char* part : {far, "drover keys make", "--tls", "--insecure"})
      EXPECT_NE(refused.error().message.find(part), std::string::npos) << part;
    EXPECT_TRUE(may_listen(far, true, false).ok());
    EXPECT_TRUE(may_listen(far, false, true).ok());
  }
  EXPECT_FALSE(may_listen("nonsense", true, true).ok());
}

}  // namespace
}  // namespace drover
