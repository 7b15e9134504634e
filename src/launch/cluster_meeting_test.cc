// How processes of a launch find each other: token files, addresses, waiting.
#include "launch/cluster_meeting.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/test_text.h"
#include "launch/cluster_address.h"
#include "net/socket.h"

namespace drover {
namespace {

constexpr const char* kToken = "123-0123456789abcdef0123456789abcdef";

class TokenFile : public ::testing::Test {
 protected:
  TokenFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "token-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~TokenFile() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path()) << text;
    ::chmod(path().c_str(), mode);
  }
  std::string path() const { return folder_ + "/token"; }

  std::string folder_;
};

TEST_F(TokenFile, HasTokenAndAddress) {
  ASSERT_TRUE(write_token_file(path(), kToken, "tcp:10.0.0.1:7").ok());
  const auto read = read_token_file(path());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().key.run, 123u);
  EXPECT_EQ(read.value().address, "tcp:10.0.0.1:7");
  struct stat about {};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(TokenFile, IsRefusedIfOtherUsersCanRead) {
  for (const mode_t mode : {0604, 0640, 0666}) {
    write(std::string(kToken) + "\n", mode);
    const auto read = read_token_file(path());
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error(), is_error(ErrorKind::kInvalidInput, path(), "chmod 600 " + path()));
  }
}

TEST_F(TokenFile, MayHaveAnyLongToken) {
  write("correct horse battery staple\r\n");
  const auto read = read_token_file(path());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().key.token, "correct horse battery staple");
  EXPECT_EQ(read.value().address, "");
  EXPECT_EQ(read.value().key.run, key_from("correct horse battery staple").value().run);
  EXPECT_NE(read.value().key.run, key_from("correct horse battery stapl.").value().run);
  write("short\n");
  EXPECT_FALSE(read_token_file(path()).ok());
  write("");
  EXPECT_FALSE(read_token_file(path()).ok());
}

TEST_F(TokenFile, IsMadeAndRemovedByTheHost) {
  auto host = TokenHost::open({.text = {}, .file = path()}, 77);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host.value().key().run, 77u);
  // A file without an address does not lead to a coordinator.
  EXPECT_FALSE(std::filesystem::exists(path()));
  ASSERT_TRUE(host.value().invite("tcp:10.0.0.1:7").ok());
  const auto read = read_token_file(path());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().key.token, host.value().key().token);
  host.value().close();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(TokenFile, OfTheUserIsNotChanged) {
  write("correct horse battery staple");
  auto host = TokenHost::open({.text = {}, .file = path()}, 77);
  ASSERT_TRUE(host.ok());
  ASSERT_TRUE(host.value().invite("tcp:10.0.0.1:7").ok());
  EXPECT_EQ(read_token_file(path()).value().address, "");
  host.value().close();
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(TokenFile, OfAKilledLaunchKeepsItsTokenAndGetsANewAddress) {
  ASSERT_TRUE(write_token_file(path(), kToken, "tcp:10.0.0.1:7").ok());
  auto host = TokenHost::open({.text = {}, .file = path()}, 77);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host.value().key().run, 123u);
  ASSERT_TRUE(host.value().invite("tcp:10.0.0.2:8").ok());
  EXPECT_EQ(read_token_file(path()).value().address, "tcp:10.0.0.2:8");
}

TEST_F(TokenFile, IsReadAgainUntilTheCoordinatorListens) {
  boost::asio::io_context loop;
  const auto listener = Listener::open(loop, "tcp:127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  const std::string address = listener.value()->address();
  // An address where no process listens any more, as after a launch that was killed.
  std::string gone;
  {
    const auto other = Listener::open(loop, "tcp:127.0.0.1:0");
    gone = other.value()->address();
  }
  ASSERT_TRUE(write_token_file(path(), kToken, gone).ok());
  Result<Invited> found = invalid_input("");
  std::thread waiting(
      [&] { found = find_coordinator({.text = {}, .file = path()}, {}, std::chrono::minutes(1)); });
  ASSERT_TRUE(write_token_file(path(), kToken, address).ok());
  waiting.join();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value().address, address);
}

TEST_F(TokenFile, ATimeoutExplainsAMissingFile) {
  const auto found = find_coordinator({.text = {}, .file = path()}, {}, Duration::zero());
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error(),
              is_error(ErrorKind::kTimedOut, path(), "--join-timeout", "DROVER_TOKEN"));
}

TEST(FindCoordinator, ByName) {
  boost::asio::io_context loop;
  const auto listener = Listener::open(loop, "tcp:127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  const std::string address = listener.value()->address();
  const std::string named = "tcp:localhost" + address.substr(address.rfind(':'));
  const auto found = find_coordinator(
      {.text = kToken, .file = {}},
      {.given = {}, .otherwise = [&](const RunKey&) { return named; }}, std::chrono::minutes(1));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value().address, address);
  // The user's address takes precedence.
  const auto said = find_coordinator(
      {.text = kToken, .file = {}},
      {.given = named, .otherwise = [](const RunKey&) { return std::string("tcp:0.0.0.0:1"); }},
      std::chrono::minutes(1));
  EXPECT_TRUE(said.ok());
}

TEST(FindCoordinator, FailsAtOnceWithoutAnAddress) {
  const auto found = find_coordinator({.text = kToken, .file = {}}, {}, std::chrono::hours(1));
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error(), is_error(ErrorKind::kInvalidInput, "--coordinator HOST:PORT"));
}

TEST(TokenPlace, FlagThenVariableThenLaunch) {
  const Environment environment = {{"HOME", "/home/me"}, {"DROVER_TOKEN", kToken}};
  EXPECT_EQ(find_token_place(environment, "f", "mpi-1").value().file, "f");
  EXPECT_EQ(find_token_place(environment, "", "mpi-1").value().text, kToken);
  EXPECT_EQ(find_token_place({{"HOME", "/home/me"}}, "", "mpi-1").value().file,
            "/home/me/.cache/drover/token-mpi-1");
  EXPECT_FALSE(find_token_place({{"HOME", "/home/me"}}, "", "").ok());
  EXPECT_FALSE(find_token_place({}, "", "mpi-1").ok());
}

const std::vector<HostAddress> kAddresses = {{"lo", "127.0.0.1", true},
                                             {"eth0", "10.0.0.5", false},
                                             {"ib0", "10.1.0.5", false},
                                             {"lo", "::1", true}};

ListenHost chosen(const ListenChoice& choice, const std::string& self = "",
                  const std::string& towards = "") {
  const auto host = choose_listen_host(choice, self, towards, kAddresses);
  EXPECT_TRUE(host.ok()) << (host.ok() ? "" : host.error().message);
  return host.ok() ? host.value() : ListenHost{};
}

TEST(ListenHost, IsReachableFromOtherHosts) {
  EXPECT_EQ(chosen({}).bind, "10.0.0.5");
  EXPECT_EQ(chosen({}, "10.1.0.5").bind, "10.1.0.5");
  EXPECT_EQ(chosen({}, "10.1.0.5").announce, "10.1.0.5");
  EXPECT_EQ(chosen({.bind = {}, .interface = "ib0"}).bind, "10.1.0.5");
  // The source address towards a loopback address is that address.
  EXPECT_EQ(chosen({}, "", "127.0.0.1").bind, "127.0.0.1");
}

TEST(ListenHost, OnAllAddressesAnnouncesOne) {
  EXPECT_EQ(chosen({.bind = "0.0.0.0", .interface = {}}).bind, "0.0.0.0");
  EXPECT_EQ(chosen({.bind = "0.0.0.0", .interface = {}}).announce, "10.0.0.5");
  EXPECT_EQ(chosen({.bind = "0.0.0.0", .interface = "ib0"}).announce, "10.1.0.5");
}

TEST(ListenHost, ALoopbackAddressMustBeRequested) {
  EXPECT_EQ(chosen({.bind = "127.0.0.1", .interface = {}}).bind, "127.0.0.1");
  EXPECT_EQ(chosen({}, "127.0.0.1").bind, "127.0.0.1");
  const auto alone = choose_listen_host({}, "", "", {{"lo", "127.0.0.1", true}});
  ASSERT_FALSE(alone.ok());
  EXPECT_THAT(alone.error(), is_error(ErrorKind::kInvalidInput, "--bind 127.0.0.1"));
}

TEST(ListenHost, AnAddressOfAnotherHostIsRefusedWithAListOfThoseOfThisHost) {
  for (const ListenChoice& choice : {ListenChoice{.bind = "10.9.9.9", .interface = {}},
                                     ListenChoice{.bind = {}, .interface = "eth7"}}) {
    const auto host = choose_listen_host(choice, "", "", kAddresses);
    ASSERT_FALSE(host.ok());
    EXPECT_THAT(host.error(), is_error(ErrorKind::kInvalidInput, "eth0", "10.0.0.5", "ib0",
                                       "10.1.0.5", choice.bind + choice.interface));
  }
  EXPECT_FALSE(
      choose_listen_host({.bind = "10.0.0.5", .interface = "eth0"}, "", "", kAddresses).ok());
}

TEST(TcpAddress, HasBracketsForIpv6) {
  EXPECT_EQ(tcp_address("10.0.0.1", 7), "tcp:10.0.0.1:7");
  EXPECT_EQ(tcp_address("::1", 7), "tcp:[::1]:7");
  EXPECT_EQ(tcp_address("[::1]", 7), "tcp:[::1]:7");
}

}  // namespace
}  // namespace drover
