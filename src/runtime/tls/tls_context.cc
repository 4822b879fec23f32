#include "runtime/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <system_error>
#include <vector>

#include "runtime/tls/openssl_handles.h"
#include "runtime/tls/tls_engine.h"

namespace varve::runtime {

namespace {

constexpr size_t kPemBytesMax = 4 << 20;

// Debian and its kin, Fedora and its kin, Alpine and the BSDs: the first that is there.
constexpr std::array<const char*, 3> kSystemAuthorities = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};

// For sentences.
std::string name_of(const PemSource& source) { return source.file.empty() ? "the PEM text" : source.file; }

std::unexpected<TlsError> out_of_memory() { return fail(TlsErrc::kNoResources, "OpenSSL is out of memory"); }

std::unexpected<TlsError> unreadable(const std::string& file) {
  unsigned long error = ERR_peek_error();
  bool is_of_system = ERR_GET_LIB(error) == ERR_LIB_SYS;
  std::string why = is_of_system ? std::generic_category().message(ERR_GET_REASON(error)) : "cannot be read";
  ERR_clear_error();
  return fail(TlsErrc::kUnreadable, fmt::format("{}: {}", file, why));
}

TlsResult<std::string> text_of(const PemSource& source) {
  if (source.file.empty()) return source.text;
  ERR_clear_error();
  BioHandle file(BIO_new_file(source.file.c_str(), "rb"));
  if (!file) return unreadable(source.file);
  std::string text;
  std::array<char, 16 * 1024> part;
  for (;;) {
    int got = BIO_read(file.get(), part.data(), part.size());
    if (got < 0) return unreadable(source.file);
    if (got == 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
    if (text.size() > kPemBytesMax) {
      return fail(TlsErrc::kUnreadable, fmt::format("{}: more than {} bytes", source.file, kPemBytesMax));
    }
  }
}

// OpenSSL would ask on the terminal otherwise.
int refuse_password(char*, int, int, void* was_asked) {
  if (was_asked != nullptr) *static_cast<bool*>(was_asked) = true;
  return -1;
}

// At least one.
TlsResult<std::vector<X509Handle>> certificates_of(const PemSource& source) {
  auto text = text_of(source);
  if (!text) return pass_error(text);
  ERR_clear_error();
  BioHandle memory(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  if (!memory) return out_of_memory();
  std::vector<X509Handle> certificates;
  while (X509* next = PEM_read_bio_X509(memory.get(), nullptr, refuse_password, nullptr)) {
    certificates.emplace_back(next);
  }
  bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!is_at_end) {
    return fail(TlsErrc::kBadCertificate,
                fmt::format("{}: certificate {} of it makes no sense: {}", name_of(source),
                            certificates.size() + 1, take_openssl_reason()));
  }
  ERR_clear_error();
  if (certificates.empty()) {
    return fail(TlsErrc::kBadCertificate,
                fmt::format("{}: no certificate in it (no line BEGIN CERTIFICATE)", name_of(source)));
  }
  return certificates;
}

TlsResult<KeyHandle> key_of(const PemSource& source) {
  auto text = text_of(source);
  if (!text) return pass_error(text);
  if (text->find("PRIVATE KEY-----") == std::string::npos) {
    return fail(TlsErrc::kBadKey,
                fmt::format("{}: no private key in it (no line BEGIN ... PRIVATE KEY)", name_of(source)));
  }
  ERR_clear_error();
  BioHandle memory(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  if (!memory) return out_of_memory();
  bool was_asked = false;
  KeyHandle key(PEM_read_bio_PrivateKey(memory.get(), nullptr, refuse_password, &was_asked));
  OPENSSL_cleanse(text->data(), text->size());
  if (key) return key;
  std::string reason = take_openssl_reason();
  if (was_asked) {
    return fail(
        TlsErrc::kBadKey,
        fmt::format("{}: the private key is behind a password; store it without one", name_of(source)));
  }
  return fail(TlsErrc::kBadKey,
              fmt::format("{}: the private key makes no sense: {}", name_of(source), reason));
}

}  // namespace

TlsResult<TlsContext> TlsContext::make(bool is_client) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> settings(SSL_CTX_new(is_client ? TLS_client_method() : TLS_server_method()),
                                    SSL_CTX_free);
  std::shared_ptr<BIO_METHOD> transport(TlsEngine::make_transport(), BIO_meth_free);
  if (!settings || !transport) return out_of_memory();
  // The system's own settings may ask for more.
  if (SSL_CTX_get_min_proto_version(settings.get()) < TLS1_2_VERSION) {
    SSL_CTX_set_min_proto_version(settings.get(), TLS1_2_VERSION);
  }
  SSL_CTX_set_options(settings.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(settings.get(), SSL_SESS_CACHE_OFF);
  // 34 KB of each connection that has nothing to do.
  SSL_CTX_set_mode(settings.get(), SSL_MODE_RELEASE_BUFFERS);
  if (is_client) {
    SSL_CTX_set_verify(settings.get(), SSL_VERIFY_PEER, nullptr);
  } else {
    SSL_CTX_set_options(settings.get(), SSL_OP_CIPHER_SERVER_PREFERENCE);
    // A client that writes, and closes before it has read its tickets, would reset the connection and with it
    // what it wrote. Connections to brokers live long: to resume a session saves next to nothing.
    SSL_CTX_set_num_tickets(settings.get(), 0);
  }
  return TlsContext(std::move(settings), std::move(transport), is_client);
}

TlsResult<TlsContext> TlsContext::client(const PemSource& trusted) {
  auto context = make(true);
  if (!context) return context;
  auto certificates = certificates_of(trusted);
  if (!certificates) return pass_error(certificates);
  X509_STORE* store = SSL_CTX_get_cert_store(context->settings_.get());
  for (const X509Handle& certificate : *certificates) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) return out_of_memory();
  }
  // Who is named is trusted, without the authority above it too.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return context;
}

TlsResult<TlsContext> TlsContext::client_of_system() {
  TlsResult<TlsContext> context = fail(TlsErrc::kUnreadable, "");
  for (const char* file : kSystemAuthorities) {
    context = client({.file = file, .text = ""});
    if (context || context.error().code != TlsErrc::kUnreadable) return context;
  }
  return fail(
      TlsErrc::kUnreadable,
      fmt::format("the system has no list of trusted authorities ({}): install its package ca-certificates, "
                  "or name a file",
                  kSystemAuthorities.front()));
}

TlsResult<TlsContext> TlsContext::server(const PemSource& certificates, const PemSource& key) {
  auto context = make(false);
  if (!context) return context;
  auto chain = certificates_of(certificates);
  if (!chain) return pass_error(chain);
  auto own_key = key_of(key);
  if (!own_key) return pass_error(own_key);
  SSL_CTX* settings = context->settings_.get();
  X509* own = chain->front().get();
  ERR_clear_error();
  if (X509_check_private_key(own, own_key->get()) != 1) {
    ERR_clear_error();
    return fail(TlsErrc::kKeyMismatch, fmt::format("the key ({}) is not that of the first certificate ({})",
                                                   name_of(key), name_of(certificates)));
  }
  // Fails for keys that are too weak for the system's settings, above all.
  if (SSL_CTX_use_certificate(settings, own) != 1 || SSL_CTX_use_PrivateKey(settings, own_key->get()) != 1) {
    return fail(TlsErrc::kBadCertificate,
                fmt::format("{} cannot be used: {}", name_of(certificates), take_openssl_reason()));
  }
  for (size_t i = 1; i < chain->size(); ++i) {
    if (SSL_CTX_add1_chain_cert(settings, (*chain)[i].get()) != 1) {
      return fail(TlsErrc::kBadCertificate, fmt::format("{}: certificate {} of it cannot be used: {}",
                                                        name_of(certificates), i + 1, take_openssl_reason()));
    }
  }
  return context;
}

}  // namespace varve::runtime
