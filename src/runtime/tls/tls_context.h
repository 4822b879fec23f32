// What TLS connections have in common: whom they trust, or who they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

struct bio_method_st;
struct ssl_ctx_st;

namespace varve::runtime {

enum class TlsErrc : uint8_t {
  kUnreadable,      // a file is not there, or cannot be read
  kBadCertificate,  // none in it, or one that makes no sense
  kBadKey,          // none in it, or one that makes no sense, or one behind a password
  kKeyMismatch,     // the key is not that of the certificate
  kNoResources,     // out of memory
};
using TlsError = ErrorOf<TlsErrc>;
template <class T>
using TlsResult = Result<T, TlsError>;

// Where PEM text comes from, 4 MiB at most.
struct PemSource {
  std::string file;  // its path; empty: `text` is it
  std::string text;
};

// TLS 1.2 or 1.3, with certificates verified: there is no way to have it otherwise. Nothing is renegotiated or
// compressed, and no session is resumed.
// A handle that copies share. Immutable once made, so that any thread may use it; connections keep what they
// need of it. Making one reads files and may block: at the start, or in an offload lane.
class TlsContext {
 public:
  // Trusts the certificates in the source, be they of authorities or of one server. For tls_connect().
  static TlsResult<TlsContext> client(const PemSource& trusted);
  // Trusts the authorities that the operating system lists (on Debian the package ca-certificates).
  static TlsResult<TlsContext> client_of_system();
  // Shows the first certificate of the source, then those that lead to an authority. For tls_accept().
  static TlsResult<TlsContext> server(const PemSource& certificates, const PemSource& key);

  bool is_client() const { return is_client_; }

 private:
  friend class TlsEngine;
  TlsContext(std::shared_ptr<ssl_ctx_st> settings, std::shared_ptr<bio_method_st> transport, bool is_client)
      : settings_(std::move(settings)), transport_(std::move(transport)), is_client_(is_client) {}

  static TlsResult<TlsContext> make(bool is_client);

  std::shared_ptr<ssl_ctx_st> settings_;
  std::shared_ptr<bio_method_st> transport_;  // how OpenSSL reaches the buffers of a TlsEngine
  bool is_client_;
};

}  // namespace varve::runtime
