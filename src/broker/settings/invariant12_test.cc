// Invariant 12: wrong settings stop the start, and nothing falls back to something else in silence.
#include <gtest/gtest.h>

#include "broker/settings/setting_table.h"
#include "broker/settings/settings.h"

namespace varve::broker {
namespace {

constexpr std::string_view kNonsense = "no/such value";

// Free text has no wrong values.
bool takes_anything(const SettingRow& row) {
  return row.group != SettingGroup::kLater && row.allowed.empty() && row.type != "true/false";
}

TEST(Invariant12, AWrongValueOfAnySettingStopsTheStartAndIsNamed) {
  int checked = 0;
  for (const SettingRow& row : setting_table()) {
    if (takes_anything(row)) continue;
    auto loaded = load_settings({{std::string(row.env), std::string(kNonsense)}}, std::nullopt);
    ASSERT_FALSE(loaded.has_value()) << row.env << " takes nonsense";
    EXPECT_EQ(loaded.error().name, row.env);
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(Invariant12, NothingThatThisProgramDoesNotHaveIsReplacedInSilence) {
  for (std::string_view name : {"KAFSCALE_ETCD_ENDPOINTS", "KAFSCALE_S3_READ_BUCKET", "KAFSCALE_ACL_JSON"}) {
    EXPECT_FALSE(load_settings({{std::string(name), "something"}}, std::nullopt)) << name;
  }
  EXPECT_FALSE(load_settings({{"KAFSCALE_USE_MEMORY_S3", "true"}}, std::nullopt));
  EXPECT_FALSE(load_settings({}, "no.such.setting=1\n"));
}

}  // namespace
}  // namespace varve::broker
