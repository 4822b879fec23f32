#include "runtime/tls/tls_engine.h"

#include <gmock/gmock.h>

#include "runtime/tls/certificates_testing.h"

namespace varve::runtime {
namespace {

using Step = TlsEngine::Step;
using testing::HasSubstr;

using SettingsHandle = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;

// The other side as OpenSSL makes it, with settings that a TlsContext does not have.
class RawPeer {
 public:
  explicit RawPeer(const SSL_METHOD* method) : settings_(SSL_CTX_new(method)) {
    SSL_CTX_set_security_level(settings(), 0);
    SSL_CTX_set_cipher_list(settings(), "ALL");
  }

  SSL_CTX* settings() { return settings_.get(); }
  SSL* ssl() { return ssl_.get(); }

  // After the settings.
  void begin(bool is_client) {
    ssl_.reset(SSL_new(settings()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl(), in_, out_);
    is_client ? SSL_set_connect_state(ssl()) : SSL_set_accept_state(ssl());
  }

  void take(std::vector<uint8_t>& bytes) {
    BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
    bytes.clear();
  }
  // What it has for the engine, at most `size` bytes.
  size_t give(MutableByteView into) {
    int got = BIO_read(out_, into.data(), static_cast<int>(into.size()));
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
  size_t waiting_bytes() { return BIO_ctrl_pending(out_); }

  void write(std::string_view text) {
    EXPECT_EQ(SSL_write(ssl(), text.data(), static_cast<int>(text.size())), static_cast<int>(text.size()));
  }
  std::string read() {
    std::string text(1000, '\0');
    int got = SSL_read(ssl(), text.data(), static_cast<int>(text.size()));
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

 private:
  SettingsHandle settings_;
  SslHandle ssl_;
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
};

// Both to the end of their handshake, or as far as they come. Gives what the engine said last.
Step shake_hands(TlsEngine& engine, RawPeer& raw) {
  for (;;) {
    Step step = engine.handshake();
    raw.take(engine.output());
    SSL_do_handshake(raw.ssl());
    if (step != Step::kNeedsInput || raw.waiting_bytes() == 0) return step;
    engine.add_input(raw.give(engine.input_room()));
  }
}

// What the raw side sends, read to its end.
std::string read_all(TlsEngine& engine, RawPeer& raw) {
  std::string text;
  std::vector<uint8_t> part(100);
  for (;;) {
    size_t got = 0;
    Step step = engine.read(part, got);
    if (step == Step::kNeedsInput) {
      if (raw.waiting_bytes() == 0) return text;
      engine.add_input(raw.give(engine.input_room()));
      continue;
    }
    EXPECT_EQ(step, Step::kDone) << engine.error().message;
    if (step != Step::kDone) return text;
    text += as_text(ByteView(part).first(got));
  }
}

class TlsEngineTest : public testing::Test {
 protected:
  std::unique_ptr<TlsEngine> make_client() {
    auto engine = TlsEngine::client(must_trust(authority_.certificate()), "localhost");
    EXPECT_TRUE(engine);
    return std::move(*engine);
  }
  std::unique_ptr<TlsEngine> make_server() {
    auto engine = TlsEngine::server(must_serve(server_.certificate(), server_.key()), "client");
    EXPECT_TRUE(engine);
    return std::move(*engine);
  }
  void begin_raw_server() {
    SSL_CTX_use_certificate(raw_server_.settings(), server_.x509());
    SSL_CTX_use_PrivateKey(raw_server_.settings(), server_.private_key());
    raw_server_.begin(false);
  }

  Identity authority_ = make_authority();
  Identity server_ = Identity::make({}, &authority_);
  RawPeer raw_server_{TLS_server_method()};
  RawPeer raw_client_{TLS_client_method()};
};

TEST_F(TlsEngineTest, VersionsBefore12AreRefusedOnBothSides) {
  for (RawPeer* raw : {&raw_server_, &raw_client_}) {
    SSL_CTX_set_min_proto_version(raw->settings(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(raw->settings(), TLS1_1_VERSION);
  }
  begin_raw_server();
  auto client = make_client();
  EXPECT_EQ(shake_hands(*client, raw_server_), Step::kFailed);
  EXPECT_THAT(client->error().message, HasSubstr("protocol version"));

  raw_client_.begin(true);
  auto server = make_server();
  EXPECT_EQ(shake_hands(*server, raw_client_), Step::kFailed);
  EXPECT_EQ(server->error().code, NetErrc::kUntrusted);
  EXPECT_THAT(server->error().message, HasSubstr("unsupported protocol"));
}

TEST_F(TlsEngineTest, Versions12And13AreSpoken) {
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    RawPeer raw{TLS_client_method()};
    SSL_CTX_set_min_proto_version(raw.settings(), version);
    SSL_CTX_set_max_proto_version(raw.settings(), version);
    raw.begin(true);
    auto server = make_server();
    ASSERT_EQ(shake_hands(*server, raw), Step::kDone);
    EXPECT_EQ(SSL_version(raw.ssl()), version);
    raw.write("hello");
    EXPECT_EQ(read_all(*server, raw), "hello");
  }
}

TEST_F(TlsEngineTest, AServerSendsNothingThatNobodyWillRead) {
  raw_client_.begin(true);
  auto server = make_server();
  ASSERT_EQ(shake_hands(*server, raw_client_), Step::kDone);
  EXPECT_EQ(raw_client_.read(), "");
  EXPECT_EQ(SSL_SESSION_has_ticket(SSL_get0_session(raw_client_.ssl())), 0) << "no session is resumed";
}

TEST_F(TlsEngineTest, AChangeOfKeysIsAnsweredWithTheNextWrite) {
  begin_raw_server();
  auto client = make_client();
  ASSERT_EQ(shake_hands(*client, raw_server_), Step::kDone);
  ASSERT_EQ(SSL_key_update(raw_server_.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
  raw_server_.write("under new keys");
  EXPECT_EQ(read_all(*client, raw_server_), "under new keys");
  EXPECT_EQ(client->write(as_bytes("so be it")), Step::kDone);
  raw_server_.take(client->output());
  EXPECT_EQ(raw_server_.read(), "so be it");
}

// Tickets that do not fit in one record of 512 bytes.
int fill_ticket(SSL* ssl, void*) {
  std::string data(2000, 'x');
  return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data.data(), data.size());
}
SSL_TICKET_RETURN take_ticket(SSL*, SSL_SESSION*, const unsigned char*, size_t, SSL_TICKET_STATUS, void*) {
  return SSL_TICKET_RETURN_IGNORE;
}

TEST_F(TlsEngineTest, AWriteInTheMiddleOfAMessageAboutTheSessionWaitsForItsRest) {
  SSL_CTX_set_session_ticket_cb(raw_server_.settings(), fill_ticket, take_ticket, nullptr);
  SSL_CTX_set_max_send_fragment(raw_server_.settings(), 512);
  begin_raw_server();
  auto client = make_client();
  ASSERT_EQ(shake_hands(*client, raw_server_), Step::kDone);
  ASSERT_GT(raw_server_.waiting_bytes(), 4000u) << "two tickets";

  std::vector<uint8_t> part(100);
  size_t got = 0;
  ASSERT_EQ(client->read(part, got), Step::kNeedsInput);
  client->add_input(raw_server_.give(client->input_room().first(700)));
  ASSERT_EQ(client->read(part, got), Step::kNeedsInput);
  EXPECT_EQ(client->write(as_bytes("now?")), Step::kNeedsInput);
  Step step = Step::kNeedsInput;
  while (step == Step::kNeedsInput && raw_server_.waiting_bytes() > 0) {
    client->add_input(raw_server_.give(client->input_room().first(700)));
    step = client->write(as_bytes("now?"));
  }
  EXPECT_EQ(step, Step::kDone);
  raw_server_.take(client->output());
  EXPECT_EQ(raw_server_.read(), "now?");
  raw_server_.write("yes");
  EXPECT_EQ(read_all(*client, raw_server_), "yes");
}

TEST_F(TlsEngineTest, NothingIsRenegotiated) {
  SSL_CTX_set_max_proto_version(raw_server_.settings(), TLS1_2_VERSION);
  begin_raw_server();
  auto client = make_client();
  ASSERT_EQ(shake_hands(*client, raw_server_), Step::kDone);
  ASSERT_EQ(SSL_renegotiate(raw_server_.ssl()), 1);
  SSL_do_handshake(raw_server_.ssl());
  ASSERT_GT(raw_server_.waiting_bytes(), 0u) << "a request to begin anew";
  EXPECT_EQ(read_all(*client, raw_server_), "");
  EXPECT_GT(client->output().size(), 0u);
  EXPECT_LT(client->output().size(), 60u) << "an alert, not a handshake";
}

TEST_F(TlsEngineTest, BytesThatAreNoTlsFailWithoutHarm) {
  for (const std::string& garbage :
       {std::string(5000, '\0'), std::string(5000, '\x16'), std::string("\x16\x03\x01\xff\xff")}) {
    auto server = make_server();
    ASSERT_EQ(server->handshake(), Step::kNeedsInput);
    MutableByteView room = server->input_room();
    size_t size = std::min(room.size(), garbage.size());
    std::copy_n(garbage.begin(), size, room.begin());
    server->add_input(size);
    EXPECT_EQ(server->handshake(), Step::kFailed);
    EXPECT_EQ(server->error().code, NetErrc::kUntrusted) << server->error().message;
    EXPECT_EQ(server->handshake(), Step::kFailed) << "for good";
  }
}

TEST_F(TlsEngineTest, HostsThatNoCertificateCanBeForAreRefused) {
  for (const std::string& host : {std::string(), std::string("a\0b", 3), std::string(300, 'a')}) {
    auto engine = TlsEngine::client(must_trust(authority_.certificate()), host);
    ASSERT_FALSE(engine) << host;
    EXPECT_EQ(engine.error().code, NetErrc::kBadAddress);
  }
}

}  // namespace
}  // namespace varve::runtime
