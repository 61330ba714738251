#include "control/server/listen.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace sluice::server {
namespace {

using testing::HasSubstr;

// F97: the address asked for is the address used, or an error.
TEST(ParseListen, TakesUnixSocketsAndLoopback) {
  EXPECT_EQ(parse_listen("unix:/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(parse_listen("unix:///run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(parse_listen("127.0.0.1:50051")->tcp, "127.0.0.1:50051");
  EXPECT_EQ(parse_listen("127.8.9.1:0")->tcp, "127.8.9.1:0");
  EXPECT_EQ(parse_listen("[::1]:50051")->tcp, "[::1]:50051");
  EXPECT_TRUE(parse_listen("localhost:1").has_value());
}

// F97
TEST(ParseListen, RefusesWhatIsOffLoopbackOrIncomplete) {
  for (const char* text :
       {"0.0.0.0:50051", "[::]:50051", "192.0.2.1:1", "[fd00::1]:1", "example.com:1"}) {
    EXPECT_THAT(parse_listen(text).error().message, HasSubstr("only a Unix socket or a loopback"))
        << text;
  }
  for (const char* text :
       {"", "127.0.0.1", ":50051", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
        "unix:", "unix:relative", "unix:/dir/", "::1:50051", "::1"}) {
    EXPECT_FALSE(parse_listen(text).has_value()) << text;
  }
}

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-sock-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/s"; }
  static int listen_at(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 1), 0);
    return fd;
  }
  std::string directory_;
};

TEST_F(UnixSocketTest, IsBoundInsideAPrivateDirectoryAndMovedWithMode0600) {
  auto claimed = UnixSocket::claim(path());
  ASSERT_TRUE(claimed.has_value()) << claimed.error().message;
  const auto private_path = (*claimed)->private_address().substr(5);
  struct stat info {};
  ASSERT_EQ(stat(std::filesystem::path(private_path).parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  const int fd = listen_at(private_path);

  ASSERT_TRUE((*claimed)->publish().has_value());

  ASSERT_EQ(lstat(path().c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  claimed->reset();
  close(fd);
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(std::filesystem::exists(path() + ".lock"));
}

TEST_F(UnixSocketTest, ASecondDaemonIsRefusedByTheLockAndNamesTheFirst) {
  auto first = UnixSocket::claim(path());
  ASSERT_TRUE(first.has_value());
  const auto second = UnixSocket::claim(path());
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message,
              HasSubstr("served by another daemon (pid " + std::to_string(getpid()) + ")"));
}

TEST_F(UnixSocketTest, ASocketSomebodyElseServesIsLeftAlone) {
  const int fd = listen_at(path());
  const auto claimed = UnixSocket::claim(path());
  ASSERT_FALSE(claimed.has_value());
  EXPECT_THAT(claimed.error().message, HasSubstr("served by another process"));
  EXPECT_TRUE(std::filesystem::exists(path()));
  close(fd);
}

TEST_F(UnixSocketTest, AStaleSocketIsReplaced) {
  close(listen_at(path()));
  auto claimed = UnixSocket::claim(path());
  ASSERT_TRUE(claimed.has_value()) << claimed.error().message;
  const int fd = listen_at((*claimed)->private_address().substr(5));
  EXPECT_TRUE((*claimed)->publish().has_value());
  close(fd);
}

TEST_F(UnixSocketTest, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(path()) << "precious";
  const auto claimed = UnixSocket::claim(path());
  ASSERT_FALSE(claimed.has_value());
  EXPECT_THAT(claimed.error().message, HasSubstr("exists and is no socket"));
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(UnixSocketTest, AnOverlongPathIsNamed) {
  const auto claimed = UnixSocket::claim(directory_ + "/" + std::string(120, 'x'));
  ASSERT_FALSE(claimed.has_value());
  EXPECT_THAT(claimed.error().message, HasSubstr("too long for a socket"));
}

TEST_F(UnixSocketTest, NothingButTheLockIsLeftOfAFailedStart) {
  UnixSocket::claim(path())->reset();
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) {
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace sluice::server
