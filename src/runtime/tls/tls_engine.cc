#include "runtime/tls/tls_engine.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "runtime/tls/certificate_text.h"

namespace varve::runtime {

namespace {

// The buffer starts small, for thousands of idle connections, and grows for those that carry much.
constexpr size_t kInputBytesMin = 4 * 1024;
constexpr size_t kInputBytesMax = 32 * 1024;

}  // namespace

struct TlsEngine::Transport {
  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static int read(BIO* bio, char* into, size_t size, size_t* got) {
    auto& self = *static_cast<TlsEngine*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = std::min(size, self.input_end_ - self.input_begin_);
    if (*got == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::copy_n(self.input_.begin() + static_cast<std::ptrdiff_t>(self.input_begin_), *got, into);
    self.input_begin_ += *got;
    return 1;
  }

  // Takes all, so that OpenSSL never waits with a record half written.
  static int write(BIO* bio, const char* from, size_t size, size_t* taken) {
    auto& self = *static_cast<TlsEngine*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    ByteView bytes = as_bytes({from, size});
    self.output_.insert(self.output_.end(), bytes.begin(), bytes.end());
    *taken = size;
    return 1;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  // Only listens: what OpenSSL found stands.
  static int on_verify(int is_trusted, X509_STORE_CTX* store) {
    if (is_trusted == 1) return is_trusted;
    void* ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    auto* self = static_cast<TlsEngine*>(SSL_get_app_data(static_cast<SSL*>(ssl)));
    self->untrusted_ = why_untrusted(X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_current_cert(store));
    return is_trusted;
  }
};

BIO_METHOD* TlsEngine::make_transport() {
  BIO_METHOD* method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "varve");
  if (method == nullptr) return nullptr;
  BIO_meth_set_create(method, Transport::create);
  BIO_meth_set_read_ex(method, Transport::read);
  BIO_meth_set_write_ex(method, Transport::write);
  BIO_meth_set_ctrl(method, Transport::control);
  return method;
}

NetResult<std::unique_ptr<TlsEngine>> TlsEngine::make(TlsContext context, std::string peer) {
  ERR_clear_error();
  std::unique_ptr<TlsEngine> engine(new TlsEngine(std::move(context), std::move(peer)));
  engine->ssl_.reset(SSL_new(engine->context_.settings_.get()));
  BIO* bio = BIO_new(engine->context_.transport_.get());
  if (!engine->ssl_ || bio == nullptr) {
    BIO_free(bio);
    return fail(NetErrc::kNoResources, "OpenSSL is out of memory");
  }
  BIO_set_data(bio, engine.get());
  SSL_set_bio(engine->ssl_.get(), bio, bio);
  SSL_set_app_data(engine->ssl_.get(), engine.get());
  return engine;
}

NetResult<std::unique_ptr<TlsEngine>> TlsEngine::client(TlsContext context, const std::string& host) {
  CHECK(context.is_client(), "a context of servers for a client");
  auto engine = make(std::move(context), "host " + host);
  if (!engine) return engine;
  // "example.com." is the same host, but neither certificates nor SNI (RFC 6066, 3) write the dot.
  bool has_last_dot = host.size() > 1 && host.ends_with('.');
  if (!(*engine)->expect_host(host.substr(0, host.size() - (has_last_dot ? 1 : 0)))) {
    return fail(NetErrc::kBadAddress, fmt::format("\"{}\" is no name of a host that TLS could verify", host));
  }
  SSL_set_verify((*engine)->ssl_.get(), SSL_VERIFY_PEER, Transport::on_verify);
  SSL_set_connect_state((*engine)->ssl_.get());
  return engine;
}

NetResult<std::unique_ptr<TlsEngine>> TlsEngine::server(TlsContext context, std::string peer) {
  CHECK(!context.is_client(), "a context of clients for a server");
  auto engine = make(std::move(context), std::move(peer));
  if (engine) SSL_set_accept_state((*engine)->ssl_.get());
  return engine;
}

bool TlsEngine::expect_host(const std::string& host) {
  // An empty name would match any certificate, and a NUL would hide what follows it.
  if (host.empty() || host.find('\0') != std::string::npos) return false;
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_.get());
  bool is_number = X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1;
  ERR_clear_error();
  if (is_number) return true;  // SNI is for names only
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool is_name = X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size()) == 1 &&
                 SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
  ERR_clear_error();
  return is_name;
}

TlsEngine::Step TlsEngine::step_after(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kNeedsInput;
    case SSL_ERROR_ZERO_RETURN:
      return Step::kEnd;
    default:
      return fail_with(failure());
  }
}

TlsEngine::Step TlsEngine::fail_with(NetError error) {
  error_ = std::move(error);
  has_failed_ = true;
  return Step::kFailed;
}

NetError TlsEngine::failure() {
  if (!untrusted_.empty()) {
    ERR_clear_error();
    return {NetErrc::kUntrusted, fmt::format("certificate of {}: {}", peer_, untrusted_)};
  }
  unsigned long error = ERR_peek_error();
  int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  std::string text = take_openssl_reason();
  if (reason > SSL_AD_REASON_OFFSET) {
    const char* alert = SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET);
    return {NetErrc::kReset, fmt::format("{} ended TLS: {}", peer_, alert)};
  }
  if (is_ready_) return {NetErrc::kReset, fmt::format("TLS with {} broke: {}", peer_, text)};
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
      reason == SSL_R_HTTPS_PROXY_REQUEST) {
    return {NetErrc::kUntrusted, fmt::format("{} does not speak TLS here, but plain text", peer_)};
  }
  return {NetErrc::kUntrusted, fmt::format("no TLS with {}: {}", peer_, text)};
}

TlsEngine::Step TlsEngine::handshake() {
  if (has_failed_) return Step::kFailed;
  ERR_clear_error();
  Step step = step_after(SSL_do_handshake(ssl_.get()));
  if (step == Step::kDone) is_ready_ = true;
  if (step == Step::kEnd) return fail_with({NetErrc::kReset, peer_ + " ended TLS in the handshake"});
  return step;
}

TlsEngine::Step TlsEngine::read(MutableByteView into, size_t& got) {
  got = 0;
  while (got < into.size()) {
    if (has_failed_) return got > 0 ? Step::kDone : Step::kFailed;
    ERR_clear_error();
    size_t part = 0;
    int result = SSL_read_ex(ssl_.get(), into.data() + got, into.size() - got, &part);
    Step step = step_after(result);
    // What comes after some bytes is told by the next call.
    if (step != Step::kDone) return got > 0 ? Step::kDone : step;
    got += part;
  }
  return Step::kDone;
}

TlsEngine::Step TlsEngine::write(ByteView record) {
  if (has_failed_) return Step::kFailed;
  ERR_clear_error();
  size_t taken = 0;
  Step step = step_after(SSL_write_ex(ssl_.get(), record.data(), record.size(), &taken));
  if (step == Step::kEnd) return fail_with({NetErrc::kReset, peer_ + " ended TLS"});
  CHECK(step != Step::kDone || taken == record.size(), "OpenSSL took {} bytes of {}", taken, record.size());
  return step;
}

void TlsEngine::end() {
  if (has_failed_ || !is_ready_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

MutableByteView TlsEngine::input_room() {
  CHECK(input_begin_ == input_end_, "{} bytes of input are not used yet", input_end_ - input_begin_);
  bool was_full = !input_.empty() && input_end_ == input_.size();
  if (input_.empty()) {
    input_.resize(kInputBytesMin);
  } else if (was_full && input_.size() < kInputBytesMax) {
    input_ = std::vector<uint8_t>(input_.size() * 2);
  }
  input_begin_ = input_end_ = 0;
  return input_;
}

void TlsEngine::add_input(size_t size) {
  CHECK(input_end_ == 0 && size <= input_.size());
  input_end_ = size;
  input_bytes_ += size;
}

}  // namespace varve::runtime
