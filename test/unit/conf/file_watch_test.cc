// A configuration file that changes while the daemon serves.
#include "conf/file_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>

namespace sluice::conf {
namespace {

using testing::HasSubstr;

class FileWatchTest : public testing::Test {
 protected:
  FileWatchTest() {
    std::string name = testing::TempDir() + "sluice-watch-XXXXXX";
    folder_ = mkdtemp(name.data());
    write("mode: nftables\n");
    auto watch = FileWatch::start(path());
    watch_.emplace(std::move(watch.value()));
  }
  ~FileWatchTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ / "sluiced.yaml"; }
  void write(const char* text) const { std::ofstream(path()) << text; }
  /// A change is told when nothing more happens.
  [[nodiscard]] std::string changed() {
    EXPECT_EQ(watch_->changed(), "");
    return watch_->changed();
  }

  std::filesystem::path folder_;
  std::optional<FileWatch> watch_;
};

TEST_F(FileWatchTest, AFileThatIsReadOnlyHasNotChanged) {
  std::ifstream in(path());
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(watch_->changed(), "");
}

TEST_F(FileWatchTest, AWriteCountsWhenTheWriterHasClosed) {
  std::ofstream out(path());
  out << "mode: ipt" << std::flush;
  EXPECT_EQ(watch_->changed(), "");
  out << "ables\n";
  out.close();
  EXPECT_EQ(changed(), path() + ": it was written");
}

TEST_F(FileWatchTest, AFileThatIsMadeEmptyFirstIsNotToldUntilItIsWhole) {
  write("");
  EXPECT_EQ(watch_->changed(), "");
  write("mode: iptables\n");
  EXPECT_EQ(changed(), path() + ": it was written");
}

TEST_F(FileWatchTest, AWriterThatWritesNothingChangesNothing) {
  std::ofstream(path(), std::ios::app).close();
  EXPECT_EQ(watch_->changed(), "");
}

TEST_F(FileWatchTest, AFileThatIsReplacedByARenameHasChanged) {
  const std::string other = path() + ".new";
  std::ofstream(other) << "mode: iptables\n";
  std::filesystem::rename(other, path());
  EXPECT_THAT(changed(), HasSubstr(path() + ": it was renamed"));
}

// The kernel says nothing of the old file then.
TEST_F(FileWatchTest, AFileThatIsReplacedWhileItIsOpenOrHasAnotherNameHasChanged) {
  std::filesystem::create_hard_link(path(), path() + ".kept");
  std::ifstream reader(path());
  const std::string other = path() + ".new";
  std::ofstream(other) << "mode: iptables\n";
  std::filesystem::rename(other, path());
  EXPECT_THAT(changed(), HasSubstr(path() + ": it was renamed"));
}

TEST_F(FileWatchTest, APipeIsNotWatched) {
  const std::string fifo = path() + ".fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  auto watch = FileWatch::start(fifo);
  ASSERT_TRUE(watch);
  std::fstream pipe(fifo);  // for both, so that nobody waits for the other
  pipe << "mode: iptables\n" << std::flush;
  pipe.close();
  EXPECT_EQ(watch->changed(), "");
  EXPECT_EQ(watch->changed(), "");
}

TEST_F(FileWatchTest, AFileThatIsRenamedHasChanged) {
  std::filesystem::rename(path(), path() + ".old");
  EXPECT_THAT(changed(), HasSubstr("renamed"));
}

// A ConfigMap: the path leads through links to a folder that goes when another took its place.
TEST_F(FileWatchTest, AFileBehindALinkHasChangedWhenItGoes) {
  std::filesystem::create_directory(folder_ / "old");
  std::ofstream(folder_ / "old" / "sluiced.yaml") << "mode: nftables\n";
  std::filesystem::create_directory_symlink(folder_ / "old", folder_ / "data");
  auto watch = FileWatch::start(folder_ / "data" / "sluiced.yaml");
  ASSERT_TRUE(watch);
  std::filesystem::remove_all(folder_ / "old");
  EXPECT_EQ(watch->changed(), "");
  EXPECT_NE(watch->changed(), "");
}

TEST_F(FileWatchTest, AFileThatIsNotThereIsALine) {
  const auto watch = FileWatch::start(path() + ".none");
  ASSERT_FALSE(watch);
  EXPECT_THAT(watch.error().message, HasSubstr(path() + ".none: cannot be watched: No such file"));
}

}  // namespace
}  // namespace sluice::conf
