#include "control/model/change_tracker.h"

#include <gtest/gtest.h>

namespace sluice::model {
namespace {

Service version(const char* label) {
  Service s;
  s.name = {"shop", "cart"};
  s.labels["version"] = label;
  return s;
}

// SY-3
TEST(ServiceChangeTracker, ChangedAndChangedBackIsNothing) {
  const Service a = version("a"), b = version("b");
  ServiceChangeTracker tracker;
  EXPECT_TRUE(tracker.update(a.name, &a, &b));
  EXPECT_FALSE(tracker.update(a.name, &b, &a));
  EXPECT_EQ(tracker.pending(), 0u);
}

TEST(ServiceChangeTracker, AnyOtherPendingServiceWantsTheSync) {
  const Service a = version("a"), b = version("b");
  ServiceChangeTracker tracker;
  tracker.update({"shop", "edge"}, nullptr, &b);
  EXPECT_TRUE(tracker.update(a.name, &a, &a));
  EXPECT_EQ(tracker.pending(), 1u);
}

TEST(ServiceChangeTracker, AfterASyncTheLatestObjectIsTheBase) {
  const Service a = version("a"), b = version("b");
  ServiceChangeTracker tracker;
  tracker.update(a.name, &a, &b);
  tracker.taken();
  EXPECT_TRUE(tracker.update(a.name, &b, &a));
}

}  // namespace
}  // namespace sluice::model
