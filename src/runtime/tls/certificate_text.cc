#include "runtime/tls/certificate_text.h"

#include <openssl/x509v3.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "runtime/tls/openssl_handles.h"

namespace varve::runtime {

namespace {

constexpr size_t kNamesShownMax = 5;
constexpr size_t kNameBytesMax = 100;

using GeneralNames = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;

ByteView bytes_of(const ASN1_STRING* text) {
  return {ASN1_STRING_get0_data(text), static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string printable(ByteView bytes) {
  std::string text;
  for (uint8_t byte : bytes.first(std::min(bytes.size(), kNameBytesMax))) {
    text += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '?';
  }
  if (bytes.size() > kNameBytesMax) text += "...";
  return text;
}

std::string ip_text(ByteView bytes) {
  if (bytes.size() == 4) return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
  if (bytes.size() != 16) return "?";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    text += fmt::format("{}{:x}", i == 0 ? "" : ":", load_be<uint16_t>(bytes.data() + i));
  }
  return text;
}

// The common name, else the organization.
std::string name_text(const X509_NAME* name) {
  for (int kind : {NID_commonName, NID_organizationName}) {
    int at = X509_NAME_get_index_by_NID(name, kind, -1);
    if (at < 0) continue;
    return printable(bytes_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at))));
  }
  return "somebody without a name";
}

// The hosts that the certificate is for.
std::string hosts_text(const X509* certificate) {
  GeneralNames names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) hosts.push_back(printable(bytes_of(name->d.dNSName)));
    if (name->type == GEN_IPADD) hosts.push_back(ip_text(bytes_of(name->d.iPAddress)));
  }
  if (hosts.empty()) return name_text(X509_get_subject_name(certificate));
  std::string text;
  for (size_t i = 0; i < hosts.size() && i < kNamesShownMax; ++i) text += (i == 0 ? "" : ", ") + hosts[i];
  if (hosts.size() > kNamesShownMax) text += fmt::format(" and {} more", hosts.size() - kNamesShownMax);
  return text;
}

std::string time_text(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "a time that makes no sense";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

}  // namespace

std::string why_untrusted(int error, X509* certificate) {
  if (certificate == nullptr) return X509_verify_cert_error_string(error);
  std::string subject = name_text(X509_get_subject_name(certificate));
  switch (error) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "self-signed, and not in the list of trusted ones";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return fmt::format("issued under \"{}\", which is not in the list of trusted ones", subject);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format("issued by \"{}\", which is not in the list of trusted ones",
                         name_text(X509_get_issuer_name(certificate)));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("that of \"{}\" expired on {}", subject, time_text(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("that of \"{}\" is not valid before {} (is the clock right?)", subject,
                         time_text(X509_get0_notBefore(certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("is for {}", hosts_text(certificate));
    default:
      return fmt::format("{} (that of \"{}\")", X509_verify_cert_error_string(error), subject);
  }
}

}  // namespace varve::runtime
