// Certificates for tests, made while they run, with whatever a test wants to be wrong with them.
#pragma once

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <string>

#include "runtime/tls/openssl_handles.h"
#include "runtime/tls/tls_context.h"

namespace varve::runtime {

struct CertificateOptions {
  std::string name = "test server";
  std::string hosts = "DNS:localhost,IP:127.0.0.1";  // as OpenSSL writes them
  bool is_authority = false;
  std::chrono::hours starts_in{-1};
  std::chrono::hours ends_in{24};
};

// A key of P-256 and its certificate.
class Identity {
 public:
  // Signed by `issuer`, or by itself.
  static Identity make(const CertificateOptions& options, const Identity* issuer = nullptr) {
    Identity made;
    made.key_.reset(EVP_EC_gen("P-256"));
    made.certificate_.reset(X509_new());
    X509* certificate = made.certificate_.get();
    X509* signer = issuer != nullptr ? issuer->certificate_.get() : certificate;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), issuer != nullptr ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), seconds_of(options.starts_in));
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds_of(options.ends_in));
    X509_set_pubkey(certificate, made.key_.get());
    const auto* name = reinterpret_cast<const unsigned char*>(options.name.c_str());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, name, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(signer));
    if (options.is_authority) {
      made.extend(signer, NID_basic_constraints, "critical,CA:TRUE");
      made.extend(signer, NID_key_usage, "critical,keyCertSign,cRLSign");
    } else if (!options.hosts.empty()) {
      made.extend(signer, NID_subject_alt_name, options.hosts);
    }
    EVP_PKEY* key = issuer != nullptr ? issuer->key_.get() : made.key_.get();
    EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
    return made;
  }

  PemSource certificate() const {
    BioHandle memory(BIO_new(BIO_s_mem()));
    EXPECT_EQ(PEM_write_bio_X509(memory.get(), certificate_.get()), 1);
    return {.file = "", .text = text_of(memory.get())};
  }
  // Behind a password if it is not empty.
  PemSource key(const std::string& password = "") const {
    BioHandle memory(BIO_new(BIO_s_mem()));
    const auto* word = reinterpret_cast<const unsigned char*>(password.data());
    EXPECT_EQ(
        PEM_write_bio_PrivateKey(memory.get(), key_.get(), password.empty() ? nullptr : EVP_aes_128_cbc(),
                                 word, static_cast<int>(password.size()), nullptr, nullptr),
        1);
    return {.file = "", .text = text_of(memory.get())};
  }

  X509* x509() const { return certificate_.get(); }
  EVP_PKEY* private_key() const { return key_.get(); }

 private:
  static long seconds_of(std::chrono::hours span) { return std::chrono::seconds(span).count(); }

  static std::string text_of(BIO* memory) {
    char* data = nullptr;
    long size = BIO_get_mem_data(memory, &data);
    return {data, static_cast<size_t>(size)};
  }

  void extend(X509* signer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, signer, certificate_.get(), nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    ASSERT_NE(extension, nullptr) << value;
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }

  KeyHandle key_;
  X509Handle certificate_;
};

inline Identity make_authority(const std::string& name = "test authority") {
  return Identity::make({.name = name, .hosts = "", .is_authority = true});
}

inline TlsContext must_trust(const PemSource& trusted) {
  auto context = TlsContext::client(trusted);
  EXPECT_TRUE(context) << context.error().message;
  return std::move(*context);
}

inline TlsContext must_serve(const PemSource& certificates, const PemSource& key) {
  auto context = TlsContext::server(certificates, key);
  EXPECT_TRUE(context) << context.error().message;
  return std::move(*context);
}

// A client and a server that go together.
struct TlsParties {
  TlsContext client;
  TlsContext server;

  static TlsParties make(const CertificateOptions& options = {}) {
    Identity authority = make_authority();
    Identity server = Identity::make(options, &authority);
    return {must_trust(authority.certificate()), must_serve(server.certificate(), server.key())};
  }
};

}  // namespace varve::runtime
