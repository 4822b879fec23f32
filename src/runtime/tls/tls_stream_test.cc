#include "runtime/tls/tls_stream.h"

#include <gmock/gmock.h>

#include "runtime/asio/asio_runtime_testing.h"
#include "runtime/network_conformance.h"
#include "runtime/tls/certificates_testing.h"
#include "runtime/tls/tls_network_testing.h"
#include "sim/runtime_testing.h"

namespace varve::runtime {

INSTANTIATE_TEST_SUITE_P(TlsOnSim, NetworkConformance,
                         testing::Values(over_tls(sim::with_seed(1)), over_tls(sim::with_seed(2))),
                         case_name);
INSTANTIATE_TEST_SUITE_P(TlsOnAsio, NetworkConformance, testing::Values(over_tls(asio_case())), case_name);

namespace {

using conformance::must_pair;
using conformance::must_write;
using conformance::read_error;
using conformance::read_text;
using conformance::StreamPair;
using testing::HasSubstr;

constexpr Duration kPatience = 20s;

// Both ends of a handshake, well or not.
struct Ends {
  MadeStream client;
  MadeStream server;
};

Task<> accept_into(TlsContext context, std::unique_ptr<Stream> plain, MonotonicTime deadline,
                   Completion<MadeStream> accepted) {
  auto stream = co_await tls_accept(std::move(context), std::move(plain), deadline);
  accepted.set(std::move(stream));
}

Task<Ends> handshake(StreamPair plain, TlsParties parties, std::string host = "localhost") {
  TaskContext& context = co_await this_context();
  MonotonicTime deadline = context.executor->now() + kPatience;
  TaskScope scope;
  Completion<MadeStream> accepted;
  scope.spawn(*context.executor, "accept",
              accept_into(parties.server, std::move(plain.server), deadline, accepted));
  MadeStream client = co_await tls_connect(parties.client, std::move(plain.client), host, deadline);
  MadeStream server = co_await accepted.wait();
  co_await scope.close();
  co_return Ends{std::move(client), std::move(server)};
}

Task<StreamPair> must_shake_hands(StreamPair plain) {
  Ends ends = co_await handshake(std::move(plain), TlsParties::make());
  EXPECT_TRUE(ends.client) << ends.client.error().message;
  EXPECT_TRUE(ends.server) << ends.server.error().message;
  StreamPair pair;
  pair.client = std::move(*ends.client);
  pair.server = std::move(*ends.server);
  co_return std::move(pair);
}

// TLS on the way of another stream.
class PassedOn : public Stream {
 public:
  explicit PassedOn(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}
  Task<NetResult<size_t>> read_some(MutableByteView into) override { return inner_->read_some(into); }
  Task<NetResult<void>> write(std::span<const ByteView> slices) override { return inner_->write(slices); }
  void close() override { inner_->close(); }
  const Address& peer() const override { return inner_->peer(); }

 private:
  std::unique_ptr<Stream> inner_;
};

class ByteByByte final : public PassedOn {
 public:
  using PassedOn::PassedOn;
  Task<NetResult<size_t>> read_some(MutableByteView into) override {
    return PassedOn::read_some(into.first(1));
  }
};

// Turns a bit of what is read once it is told to.
class Tampering final : public PassedOn {
 public:
  Tampering(std::unique_ptr<Stream> inner, std::shared_ptr<bool> is_on)
      : PassedOn(std::move(inner)), is_on_(std::move(is_on)) {}
  Task<NetResult<size_t>> read_some(MutableByteView into) override {
    auto got = co_await PassedOn::read_some(into);
    if (got && *got > 0 && *is_on_) into[*got - 1] ^= 1;
    co_return got;
  }

 private:
  std::shared_ptr<bool> is_on_;
};

class TlsStreamTest : public NetworkConformance {};

// Bytes that tell their place.
std::string pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

// One write after the other, each of three slices.
Task<> write_sizes(Stream& stream, std::vector<size_t> sizes) {
  for (size_t size : sizes) {
    std::string text = pattern(size);
    std::string_view view = text;
    std::vector<ByteView> slices = {as_bytes(view.substr(0, size / 3)), {}, as_bytes(view.substr(size / 3))};
    auto written = co_await stream.write(slices);
    EXPECT_TRUE(written) << written.error().message;
  }
}

Task<> read_sizes(Stream& stream, std::vector<size_t> sizes, Completion<Done> done) {
  for (size_t size : sizes) {
    std::string text = co_await read_text(stream, size);
    EXPECT_TRUE(text == pattern(size)) << "of " << size << " bytes came " << text.size();
  }
  done.set(Done{});
}

Task<> exchange(StreamPair pair, std::vector<size_t> sizes) {
  TaskContext& context = co_await this_context();
  TaskScope scope;
  std::vector<Completion<Done>> all_done(2);
  scope.spawn(*context.executor, "client writes", write_sizes(*pair.client, sizes));
  scope.spawn(*context.executor, "server writes", write_sizes(*pair.server, sizes));
  scope.spawn(*context.executor, "client reads", read_sizes(*pair.client, sizes, all_done[0]));
  scope.spawn(*context.executor, "server reads", read_sizes(*pair.server, sizes, all_done[1]));
  for (const Completion<Done>& done : all_done) co_await done.wait();
  co_await scope.close();
}

Task<> both_ways(Runtime& runtime) {
  StreamPair pair = co_await must_shake_hands(co_await must_pair(runtime));
  std::vector<size_t> sizes = {1, 2, 100, 4096, 16'383, 16'384, 16'385, 33'000, 300'000, 3, 2'000'000, 1};
  co_await exchange(std::move(pair), sizes);
}

Task<> byte_by_byte(Runtime& runtime) {
  StreamPair plain = co_await must_pair(runtime);
  plain.client = std::make_unique<ByteByByte>(std::move(plain.client));
  plain.server = std::make_unique<ByteByByte>(std::move(plain.server));
  StreamPair pair = co_await must_shake_hands(std::move(plain));
  std::vector<size_t> sizes = {1, 5, 300, 17'000};
  co_await exchange(std::move(pair), sizes);
}

// What a client says of the certificate that a server shows.
Task<> expect_untrusted(Runtime& runtime, TlsParties parties, std::string host, std::string why) {
  Ends ends = co_await handshake(co_await must_pair(runtime), std::move(parties), host);
  EXPECT_FALSE(ends.client) << why;
  if (ends.client) co_return;
  EXPECT_EQ(ends.client.error().code, NetErrc::kUntrusted);
  EXPECT_THAT(ends.client.error().message, HasSubstr("certificate of host " + host + ": "));
  EXPECT_THAT(ends.client.error().message, HasSubstr(why));
  EXPECT_TRUE(!ends.server && ends.server.error().code == NetErrc::kReset) << why;
}

Task<> untrusted(Runtime& runtime) {
  co_await expect_untrusted(runtime, TlsParties::make(), "example.org", "is for localhost, 127.0.0.1");
  co_await expect_untrusted(runtime, TlsParties::make(), "127.0.0.2", "is for localhost, 127.0.0.1");
  co_await expect_untrusted(runtime, TlsParties::make(), "::1", "is for localhost, 127.0.0.1");
  CertificateOptions many{.hosts = "DNS:a,DNS:b,DNS:c,DNS:d,DNS:e,DNS:f,DNS:*.g"};
  co_await expect_untrusted(runtime, TlsParties::make(many), "x.y.g", "is for a, b, c, d, e and 2 more");
  CertificateOptions expired{.starts_in = std::chrono::hours(-48), .ends_in = std::chrono::hours(-24)};
  co_await expect_untrusted(runtime, TlsParties::make(expired), "localhost",
                            "that of \"test server\" expired on 2");
  CertificateOptions future{.starts_in = std::chrono::hours(24), .ends_in = std::chrono::hours(48)};
  co_await expect_untrusted(runtime, TlsParties::make(future), "localhost", "is not valid before 2");

  Identity alone = Identity::make({});
  TlsContext by_itself = must_serve(alone.certificate(), alone.key());
  TlsContext others = must_trust(make_authority().certificate());
  co_await expect_untrusted(runtime, {others, by_itself}, "localhost", "self-signed");
  Identity stranger = make_authority("stranger");
  Identity of_stranger = Identity::make({}, &stranger);
  TlsContext server = must_serve(of_stranger.certificate(), of_stranger.key());
  co_await expect_untrusted(runtime, {others, server}, "localhost", "issued by \"stranger\"");
}

Task<> expect_trusted(Runtime& runtime, TlsParties parties, std::string host) {
  Ends ends = co_await handshake(co_await must_pair(runtime), std::move(parties), host);
  EXPECT_TRUE(ends.client) << host << ": " << ends.client.error().message;
  EXPECT_TRUE(ends.server) << host;
}

Task<> trusted(Runtime& runtime) {
  co_await expect_trusted(runtime, TlsParties::make(), "localhost");
  co_await expect_trusted(runtime, TlsParties::make(), "LOCALHOST.");
  co_await expect_trusted(runtime, TlsParties::make(), "127.0.0.1");
  CertificateOptions wide{.hosts = "DNS:*.example.org,IP:::1"};
  co_await expect_trusted(runtime, TlsParties::make(wide), "bucket.example.org");
  co_await expect_trusted(runtime, TlsParties::make(wide), "::1");

  Identity alone = Identity::make({});
  TlsContext by_itself = must_serve(alone.certificate(), alone.key());
  co_await expect_trusted(runtime, {must_trust(alone.certificate()), by_itself}, "localhost");
  Identity root = make_authority("root");
  Identity between = Identity::make({.name = "between", .hosts = "", .is_authority = true}, &root);
  Identity leaf = Identity::make({}, &between);
  PemSource chain{.file = "", .text = leaf.certificate().text + between.certificate().text};
  TlsContext server = must_serve(chain, leaf.key());
  co_await expect_trusted(runtime, {must_trust(root.certificate()), server}, "localhost");
  co_await expect_trusted(runtime, {must_trust(between.certificate()), server}, "localhost");
}

Task<> connect_into(TlsContext context, std::unique_ptr<Stream> plain, std::string host,
                    MonotonicTime deadline, Completion<NetError> failed) {
  auto stream = co_await tls_connect(std::move(context), std::move(plain), host, deadline);
  EXPECT_FALSE(stream);
  failed.set(stream ? NetError{} : stream.error());
}

// How a client takes what `server` does, which has the plain stream.
Task<NetError> client_error(Runtime& runtime, Task<> (*server)(Stream&), Duration patience) {
  StreamPair plain = co_await must_pair(runtime);
  TaskScope scope;
  Completion<NetError> failed;
  scope.spawn(runtime.io(0), "client",
              connect_into(TlsParties::make().client, std::move(plain.client), "localhost",
                           runtime.now() + patience, failed));
  co_await server(*plain.server);
  NetError error = co_await failed.wait();
  co_await scope.close();
  co_return error;
}

Task<> answer_plainly(Stream& stream) { co_await must_write(stream, "HTTP/1.1 400 Bad Request\r\n\r\n"); }
Task<> say_nothing(Stream&) { co_return; }
Task<> hang_up(Stream& stream) {
  co_await read_text(stream, 100);
  stream.close();
}

Task<> plain_text_server(Runtime& runtime) {
  NetError error = co_await client_error(runtime, answer_plainly, kPatience);
  EXPECT_EQ(error.code, NetErrc::kUntrusted);
  EXPECT_EQ(error.message, "host localhost does not speak TLS here, but plain text");
}

Task<> silent_server(Runtime& runtime) {
  MonotonicTime before = runtime.now();
  NetError error = co_await client_error(runtime, say_nothing, 50ms);
  EXPECT_EQ(error.code, NetErrc::kTimeout) << error.message;
  EXPECT_GE(runtime.now() - before, 50ms);
}

Task<> cut_in_handshake(Runtime& runtime) {
  NetError error = co_await client_error(runtime, hang_up, kPatience);
  EXPECT_EQ(error.code, NetErrc::kReset) << error.message;
  EXPECT_THAT(error.message, HasSubstr("TLS handshake with host localhost"));
}

Task<> plain_text_client(Runtime& runtime) {
  for (std::string text : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\0\0\0\x10\0\x12\0\x03", 8)}) {
    StreamPair plain = co_await must_pair(runtime);
    co_await must_write(*plain.client, text);
    auto stream =
        co_await tls_accept(TlsParties::make().server, std::move(plain.server), runtime.now() + kPatience);
    EXPECT_TRUE(!stream && stream.error().code == NetErrc::kUntrusted);
    if (!stream) EXPECT_THAT(stream.error().message, HasSubstr("does not speak TLS"));
  }
}

// The first record that a client sends.
Task<std::string> client_hello(Runtime& runtime, std::string host) {
  StreamPair plain = co_await must_pair(runtime);
  TaskScope scope;
  Completion<NetError> failed;
  scope.spawn(
      runtime.io(0), "client",
      connect_into(TlsParties::make().client, std::move(plain.client), host, MonotonicTime::never(), failed));
  std::string head = co_await read_text(*plain.server, 5);
  EXPECT_EQ(head.size(), 5u);
  std::string rest = co_await read_text(*plain.server, load_be<uint16_t>(as_bytes(head).data() + 3));
  co_await scope.close();
  NetError error = co_await failed.wait();
  EXPECT_EQ(error.code, NetErrc::kClosed) << "a stop ends a handshake: " << error.message;
  co_return rest;
}

Task<> server_names(Runtime& runtime) {
  std::string by_name = co_await client_hello(runtime, "some.example.org");
  EXPECT_THAT(by_name, HasSubstr("some.example.org"));
  std::string by_number = co_await client_hello(runtime, "192.0.2.1");
  EXPECT_THAT(by_number, testing::Not(HasSubstr("192.0.2.1")));
}

Task<> truncation(Runtime& runtime) {
  StreamPair plain = co_await must_pair(runtime);
  Stream* below_server = plain.server.get();
  StreamPair pair = co_await must_shake_hands(std::move(plain));
  co_await must_write(*pair.server, "half");
  below_server->close();
  EXPECT_EQ(co_await read_text(*pair.client, 4), "half");
  std::vector<uint8_t> bytes(10);
  auto got = co_await pair.client->read_some(bytes);
  EXPECT_TRUE(!got && got.error().code == NetErrc::kReset);
  if (!got) EXPECT_THAT(got.error().message, HasSubstr("was cut"));
}

Task<> tampering(Runtime& runtime) {
  StreamPair plain = co_await must_pair(runtime);
  auto is_on = std::make_shared<bool>(false);
  plain.client = std::make_unique<Tampering>(std::move(plain.client), is_on);
  StreamPair pair = co_await must_shake_hands(std::move(plain));
  co_await must_write(*pair.server, "fine");
  EXPECT_EQ(co_await read_text(*pair.client, 4), "fine");
  *is_on = true;
  // More than a record, so that a length that was changed is waited for in vain by nobody.
  co_await must_write(*pair.server, pattern(40'000));
  EXPECT_EQ(co_await read_error(*pair.client), NetErrc::kReset);
  EXPECT_EQ(co_await read_error(*pair.client), NetErrc::kReset) << "for good";
  EXPECT_EQ(co_await read_error(*pair.server), NetErrc::kReset) << "the other side is told";
}

Task<> destroying(Runtime& runtime) {
  StreamPair pair = co_await must_shake_hands(co_await must_pair(runtime));
  co_await must_write(*pair.client, "last words");
  pair.client.reset();
  EXPECT_EQ(co_await read_text(*pair.server, 100), "last words") << "and an orderly end";
}

Task<> write_more_than_fits(Stream& stream, Completion<NetErrc> failed) {
  std::vector<uint8_t> bytes(conformance::kMoreThanBuffers);
  std::vector<ByteView> slices = {bytes};
  auto written = co_await stream.write(slices);
  EXPECT_FALSE(written);
  failed.set(written ? NetErrc::kNoResources : written.error().code);
}

Task<> stopped_write(Runtime& runtime) {
  StreamPair pair = co_await must_shake_hands(co_await must_pair(runtime));
  TaskScope scope;
  Completion<NetErrc> failed;
  scope.spawn(runtime.io(0), "writer", write_more_than_fits(*pair.client, failed));
  co_await sleep_for(20ms);
  EXPECT_FALSE(failed.is_set());
  co_await scope.close();
  EXPECT_EQ(co_await failed.wait(), NetErrc::kClosed);
  std::vector<ByteView> slices = {as_bytes("more")};
  auto written = co_await pair.client->write(slices);
  EXPECT_FALSE(written) << "behind a part of a record nothing can follow";
  co_await must_write(*pair.server, "still there");
  EXPECT_EQ(co_await read_text(*pair.client, 11), "still there") << "the other direction goes on";
}

Task<> close_in_write(Runtime& runtime) {
  StreamPair pair = co_await must_shake_hands(co_await must_pair(runtime));
  TaskScope scope;
  Completion<NetErrc> failed;
  scope.spawn(runtime.io(0), "writer", write_more_than_fits(*pair.client, failed));
  co_await sleep_for(20ms);
  pair.client->close();
  EXPECT_EQ(co_await failed.wait(), NetErrc::kClosed);
  co_await scope.close();
  std::vector<uint8_t> bytes(100'000);
  NetResult<size_t> got = size_t{1};
  while (got && *got > 0) got = co_await pair.server->read_some(bytes);
  EXPECT_TRUE(!got && got.error().code == NetErrc::kReset) << "what was cut does not look whole";
}

TEST_P(TlsStreamTest, CarriesBytesOfAnySizeBothWaysAtOnce) { run(both_ways); }
TEST_P(TlsStreamTest, TakesATransportThatGivesOneByteAtATime) { run(byte_by_byte); }
TEST_P(TlsStreamTest, SaysWhatIsWrongWithACertificate) { run(untrusted); }
TEST_P(TlsStreamTest, TakesCertificatesThatAreRight) { run(trusted); }
TEST_P(TlsStreamTest, APlainTextServerIsCalledOne) { run(plain_text_server); }
TEST_P(TlsStreamTest, APlainTextClientIsCalledOne) { run(plain_text_client); }
TEST_P(TlsStreamTest, ASilentServerIsGivenUpAtTheDeadline) { run(silent_server); }
TEST_P(TlsStreamTest, AConnectionCutInTheHandshakeIsReset) { run(cut_in_handshake); }
TEST_P(TlsStreamTest, NamesTheServerUnlessItIsANumberAndEndsWhenStopped) { run(server_names); }
TEST_P(TlsStreamTest, AnEndThatTlsDoesNotConfirmIsReset) { run(truncation); }
TEST_P(TlsStreamTest, BytesChangedOnTheWayAreReset) { run(tampering); }
TEST_P(TlsStreamTest, DestroyingAStreamEndsItInOrder) { run(destroying); }
TEST_P(TlsStreamTest, AStoppedWriteEndsThatDirection) { run(stopped_write); }
TEST_P(TlsStreamTest, ClosingInTheMiddleOfAWriteIsNoOrderlyEnd) { run(close_in_write); }

INSTANTIATE_TEST_SUITE_P(Sim, TlsStreamTest,
                         testing::Values(sim::with_seed(1), sim::with_seed(2), sim::with_seed(3)), case_name);
INSTANTIATE_TEST_SUITE_P(Asio, TlsStreamTest, testing::Values(asio_case()), case_name);

}  // namespace
}  // namespace varve::runtime
