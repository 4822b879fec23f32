// OpenSSL's objects with an owner. Private to runtime/tls.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace varve::runtime {

template <auto release>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};

using BioHandle = std::unique_ptr<BIO, FreedBy<BIO_free>>;
using SslHandle = std::unique_ptr<SSL, FreedBy<SSL_free>>;
using X509Handle = std::unique_ptr<X509, FreedBy<X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;

// Why the last call of this thread failed, in OpenSSL's words: the first cause it tells. Forgets them all.
std::string take_openssl_reason();

}  // namespace varve::runtime
