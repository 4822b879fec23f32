// What tests of a client that may do little share.
#pragma once

#include <gtest/gtest.h>

#include "broker/security/authorizer_testing.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {

// One broker that has a topic named "secret", and allows nothing but what the test says.
class DeniedClientTest : public sim::BrokerFixture {
 protected:
  DeniedClientTest() {
    authorizer_ = &authorizer;
    authorizer.allow(Operation::kCreate, ResourceType::kCluster);
    start_brokers(1);
    run([this]() -> runtime::Task<> {
      sim::RawClient client = co_await connect();
      auto made = co_await client.ask(sim::create_request("secret", 1), 7);
      id = made.topics.at(0).topic_id;
    });
    authorizer.deny_again();
    authorizer.take_asked();
  }

  DenyEverything authorizer;
  Uuid id;  // of the topic
};

}  // namespace varve::broker
