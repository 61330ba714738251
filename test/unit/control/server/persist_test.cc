#include "control/server/persist.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "test/support/cluster_objects.h"

namespace sluice::server {
namespace {

using testing::HasSubstr;

class PersistTest : public testing::Test {
 protected:
  PersistTest() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-state-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~PersistTest() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/state"; }
  static model::ClusterState some_state() {
    auto state = test::make_state({test::make_service("a", "10.96.0.1")},
                                  {test::make_slice("a", "1", {"10.1.0.1"})});
    state.nodes["n"].name = "n";
    state.nodes["n"].labels = {{"zone", "z"}};
    state.service_cidrs["kubernetes"] = {"kubernetes", {"10.96.0.0/12"}};
    state.version = 77;
    return state;
  }
  std::string error() const { return load_state(path()).error().message; }
  std::string directory_;
};

TEST_F(PersistTest, GivesBackWhatWasSaved) {
  ASSERT_TRUE(save_state(path(), some_state()).has_value());
  const auto loaded = load_state(path());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ(**loaded, some_state());
  EXPECT_FALSE(std::filesystem::exists(path() + ".tmp"));
}

TEST_F(PersistTest, NoFileIsNoError) {
  const auto loaded = load_state(path());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_FALSE(loaded->has_value());
}

TEST_F(PersistTest, DamageIsFoundAndTheFileLeftAlone) {
  ASSERT_TRUE(save_state(path(), some_state()).has_value());
  const auto size = std::filesystem::file_size(path());
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size - 5));
    file.put('\x7f');
  }
  EXPECT_THAT(error(), HasSubstr("wrong checksum"));
  std::filesystem::resize_file(path(), size - 3);
  EXPECT_THAT(error(), HasSubstr("is cut"));
  std::filesystem::resize_file(path(), 10);
  EXPECT_THAT(error(), HasSubstr("no snapshot of this format"));
  EXPECT_TRUE(std::filesystem::exists(path()));
}

// A file of a later format (a downgrade) and a version that later changes would overrun.
TEST_F(PersistTest, WhatALaterDaemonWroteIsReportedAndLeftAlone) {
  ASSERT_TRUE(save_state(path(), some_state()).has_value());
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(6);
    file.write("02", 2);
  }
  EXPECT_THAT(error(), HasSubstr("no snapshot of this format"));
  EXPECT_TRUE(std::filesystem::exists(path()));
  auto state = some_state();
  state.version = UINT64_MAX;
  ASSERT_TRUE(save_state(path(), state).has_value());
  EXPECT_THAT(error(), HasSubstr("impossible version"));
}

// A daemon that stops does not wait for a writer that gets no time.
TEST_F(PersistTest, ASaveThatIsGivenUpKeepsTheFormerFile) {
  ASSERT_TRUE(save_state(path(), some_state()).has_value());
  auto next = some_state();
  next.version = 78;
  const std::atomic<bool> give_up{true};
  const auto saved = save_state(path(), next, &give_up);
  ASSERT_TRUE(saved.has_value()) << saved.error().message;
  EXPECT_EQ(*saved, Saved::kGivenUp);
  EXPECT_EQ((*load_state(path()))->version, 77u);
  EXPECT_FALSE(std::filesystem::exists(path() + ".tmp"));
}

TEST_F(PersistTest, AFailedSaveKeepsTheFormerFile) {
  ASSERT_TRUE(save_state(path(), some_state()).has_value());
  std::filesystem::create_directory(path() + ".tmp");  // cannot be opened for writing
  EXPECT_THAT(save_state(path(), {}).error().message, HasSubstr("cannot write"));
  EXPECT_EQ((*load_state(path()))->version, 77u);
}

}  // namespace
}  // namespace sluice::server
