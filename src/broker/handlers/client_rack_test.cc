#include "broker/handlers/client_rack.h"

#include <gtest/gtest.h>

namespace varve::broker {
namespace {

const std::set<std::string, std::less<>> kRacks = {"us-east-1a", "us-east-1b", "b"};

TEST(ClientRack, IsFoundUnderEveryKnownKey) {
  EXPECT_EQ(client_rack("app,diskless_rack_id=us-east-1a", kRacks), "us-east-1a");
  EXPECT_EQ(client_rack("diskless_az=us-east-1b", kRacks), "us-east-1b");
  EXPECT_EQ(client_rack("app,ws_az=us-east-1a,ws_host_override=x", kRacks), "us-east-1a");
  EXPECT_EQ(client_rack("automq_type=consumer&automq_az=us-east-1a&x=y", kRacks), "us-east-1a");
  EXPECT_EQ(client_rack("zone=b,host7", kRacks), "b");
  EXPECT_EQ(client_rack("mm2 diskless_az=b|a->b|0", kRacks), "b");
}

TEST(ClientRack, SuffixesOfLibrariesAreCutUntilARackIsKnown) {
  EXPECT_EQ(client_rack("diskless_az=us-east-1a-consumer-1", kRacks), "us-east-1a");
  EXPECT_EQ(client_rack("zone=b-StreamThread-1-producer", kRacks), "b");
  EXPECT_EQ(client_rack("zone=elsewhere-1", kRacks), "elsewhere-1");
}

TEST(ClientRack, IsEmptyWhereNothingNamesOne) {
  EXPECT_EQ(client_rack("", kRacks), "");
  EXPECT_EQ(client_rack("app-us-east-1a", kRacks), "");
  EXPECT_EQ(client_rack("timezone=b", kRacks), "");
  EXPECT_EQ(client_rack("zone=", kRacks), "");
  EXPECT_EQ(client_rack("zone=,x", kRacks), "");
}

}  // namespace
}  // namespace varve::broker
