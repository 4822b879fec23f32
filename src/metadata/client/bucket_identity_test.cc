#include "metadata/client/bucket_identity.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace varve::metadata {
namespace {

TEST(BucketIdentity, TheTextIsTheOneThatTheFormatPageShows) {
  LogIdentity identity;
  identity.id.bytes.fill(0x11);
  std::ifstream page("docs/formats/keys.md");
  std::stringstream text;
  text << page.rdbuf();
  EXPECT_NE(text.str().find("```\n" + identity_text(identity) + "```"), std::string::npos);
}

}  // namespace
}  // namespace varve::metadata
