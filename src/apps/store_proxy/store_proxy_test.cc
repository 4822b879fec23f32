#include "apps/store_proxy/store_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object_store/s3/fake_s3_testing.h"
#include "object_store/s3/s3_store.h"
#include "object_store/store_conformance.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::apps {
namespace {

using object_store::ObjectStore;
using object_store::S3Store;
using object_store::StoreErrc;
using object_store::conformance::body_of;
using object_store::conformance::code_of;
using object_store::conformance::text_at;
using object_store::s3::FakeS3;
using runtime::Task;
using runtime::http::Message;
using testing::HasSubstr;

const object_store::s3::Credentials kKeys{"AK", "secret", ""};

// A client, the proxy and a store, each on a machine of its own in a simulated world.
class ProxyUnderTest final : public object_store::StoreUnderTest {
 public:
  ProxyUnderTest() {
    store_server.start({"store", 80});
    auto started = proxy.start();
    EXPECT_TRUE(started) << started.error().message;
  }
  ObjectStore& store() override { return store_; }
  void run(Task<> task) override { sim::run_task(world, client.process().io(0), std::move(task)); }

  // Of the proxy itself.
  Task<Message> ask(std::string method, std::string target) {
    runtime::http::ClientRequest request{
        .method = std::move(method), .target = std::move(target), .headers = {{"Host", "proxy"}}};
    auto answer = co_await http.send(std::move(request));
    EXPECT_TRUE(answer);
    co_return answer ? std::move(*answer) : Message();
  }

  sim::World world{{.seed = 1}};
  sim::SimNetwork network{world};
  sim::Node store_node{world, {.host = "store"}, &network};
  sim::Node proxy_node{world, {.host = "proxy"}, &network};
  sim::Node client{world, {.host = "client"}, &network};
  FakeS3 store_server{store_node.process(), "bucket", kKeys};
  StoreProxy proxy{proxy_node.process(), {.listen = {"proxy", 80}, .store = {"store", 80}}};
  runtime::http::Client http{client.process(), {.connect = [this](MonotonicTime deadline) {
                               return client.process().network().connect({"proxy", 80}, deadline);
                             }}};

 private:
  static object_store::s3::S3Options options() {
    object_store::s3::S3Options options;
    options.endpoint = {false, "store.example.com", 80};
    options.bucket = "bucket";
    options.path_style = true;
    options.credentials = kKeys;
    return options;
  }
  S3Store store_{client.process(), options(), [this](MonotonicTime deadline) {
                   return client.process().network().connect({"proxy", 80}, deadline);
                 }};
};

}  // namespace
}  // namespace varve::apps

namespace varve::object_store {
INSTANTIATE_TEST_SUITE_P(ThroughTheProxy, StoreConformance,
                         testing::Values(StoreCase{"sim",
                                                   [] { return std::make_unique<apps::ProxyUnderTest>(); }}),
                         store_case_name);
}  // namespace varve::object_store

namespace varve::apps {
namespace {

class StoreProxyTest : public testing::Test {
 protected:
  void run(Task<> (*body)(ProxyUnderTest*)) { host_.run(body(&host_)); }
  ProxyUnderTest host_;
};

TEST_F(StoreProxyTest, CountsByKind) {
  run([](ProxyUnderTest* host) -> Task<> {
    EXPECT_TRUE(co_await host->store().put("a", body_of("12345")));
    EXPECT_EQ(co_await text_at(host->store(), "a"), "12345");
    EXPECT_EQ(co_await text_at(host->store(), "a", object_store::ByteRange{1, 2}), "23");
    EXPECT_TRUE(co_await host->store().list("", "", 10));
    EXPECT_TRUE(co_await host->store().delete_many({"a"}));
    EXPECT_EQ(code_of(co_await host->store().head("a")), StoreErrc::kNotFound);
    Message counts = co_await host->ask("GET", "/_proxy/counts");
    EXPECT_THAT(std::string(as_text(counts.body.view())),
                HasSubstr(R"({"put": 1, "get": 2, "head": 1, "list": 1, "delete": 1, "bytes_put": )"));
  });
}

TEST_F(StoreProxyTest, TakesTheTimeThatItIsTold) {
  run([](ProxyUnderTest* host) -> Task<> {
    Message set = co_await host->ask("POST", "/_proxy/set?put-p50-ms=5000&put-p99-ms=5001");
    EXPECT_EQ(set.status, 200u);
    MonotonicTime began = host->world.now();
    EXPECT_TRUE(co_await host->store().put("a", body_of("x")));
    EXPECT_GT(host->world.now() - began, 4900ms);
    began = host->world.now();
    EXPECT_EQ(co_await text_at(host->store(), "a"), "x");
    EXPECT_LT(host->world.now() - began, 1s);
    set = co_await host->ask("POST", "/_proxy/set?cut=2000");
    EXPECT_EQ(set.status, 400u);
    EXPECT_EQ((co_await host->ask("GET", "/_proxy/none")).status, 404u);
  });
}

// What a client sees of each fate, and whether the store had done what it was asked.
TEST_F(StoreProxyTest, EachFateIsWhatItSays) {
  run([](ProxyUnderTest* host) -> Task<> {
    struct Case {
      std::string name;
      StoreErrc seen;
      bool has_effect;
    };
    for (const Case& one : {Case{"throttled", StoreErrc::kThrottled, false},
                            {"failed", StoreErrc::kUnavailable, false},
                            {"reply-lost", StoreErrc::kUnavailable, true},
                            {"error-after", StoreErrc::kUnavailable, true},
                            {"stalled", StoreErrc::kUnavailable, true},
                            {"cut", StoreErrc::kUnavailable, true},
                            {"skewed", StoreErrc::kDenied, false}}) {
      co_await host->ask("POST", "/_proxy/set?stall-ms=1000&" + one.name + "=1000");
      EXPECT_EQ(code_of(co_await host->store().put("k-" + one.name, body_of("0123456789"))), one.seen)
          << one.name;
      co_await host->ask("POST", "/_proxy/set?" + one.name + "=0");
      auto got = co_await host->store().head("k-" + one.name);
      EXPECT_EQ(got.has_value(), one.has_effect) << one.name;
    }
  });
}

TEST_F(StoreProxyTest, CorruptsABodyAndNothingElse) {
  run([](ProxyUnderTest* host) -> Task<> {
    EXPECT_TRUE(co_await host->store().put("k", body_of("0123456789")));
    co_await host->ask("POST", "/_proxy/set?corrupted=1000");
    EXPECT_EQ(co_await text_at(host->store(), "k"),
              "01234\x15"
              "6789");
    EXPECT_TRUE(co_await host->store().put("other", body_of("x")));
    EXPECT_TRUE(co_await host->store().head("other"));
  });
}

TEST_F(StoreProxyTest, WithoutItsStoreItSaysBadGateway) {
  run([](ProxyUnderTest* host) -> Task<> {
    host->network.set_isolated("store", true);
    EXPECT_EQ(code_of(co_await host->store().put("k", body_of("x"))), StoreErrc::kUnavailable);
    host->network.set_isolated("store", false);
    EXPECT_TRUE(co_await host->store().put("k", body_of("x")));
  });
}

}  // namespace
}  // namespace varve::apps
