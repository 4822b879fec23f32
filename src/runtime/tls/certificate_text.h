// Certificates in words, for people who look for what is wrong with one. Private to runtime/tls.
#pragma once

#include <openssl/x509.h>

#include <string>

namespace varve::runtime {

// Why a certificate is not trusted, to stand behind "certificate of <host>: ". `error` is an X509_V_ERR_;
// `certificate` is the one at fault, or null. What it says of itself is cut short and made printable: a stranger wrote it.
std::string why_untrusted(int error, X509* certificate);

}  // namespace varve::runtime
