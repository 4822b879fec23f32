#include "runtime/tls/tls_context.h"

#include <gmock/gmock.h>

#include "runtime/temporary_folder_testing.h"
#include "runtime/tls/certificates_testing.h"

namespace varve::runtime {
namespace {

using testing::HasSubstr;

// Expects the error, with a sentence that holds all of `parts`.
void expect_error(const TlsResult<TlsContext>& context, TlsErrc code, const std::vector<std::string>& parts) {
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, code) << context.error().message;
  for (const std::string& part : parts) EXPECT_THAT(context.error().message, HasSubstr(part));
}

class TlsContextTest : public testing::Test {
 protected:
  PemSource file_of(const std::string& name, const std::string& text) {
    PemSource source{.file = folder_.path() + "/" + name, .text = ""};
    BioHandle file(BIO_new_file(source.file.c_str(), "wb"));
    EXPECT_EQ(BIO_write(file.get(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
    return source;
  }

  TemporaryFolder folder_;
  Identity authority_ = make_authority();
  Identity server_ = Identity::make({}, &authority_);
};

TEST_F(TlsContextTest, FilesAndTextMakeTheSame) {
  EXPECT_TRUE(TlsContext::client(authority_.certificate()));
  EXPECT_TRUE(TlsContext::client(file_of("ca.pem", authority_.certificate().text)));
  EXPECT_TRUE(TlsContext::server(server_.certificate(), server_.key()));
  EXPECT_TRUE(TlsContext::server(file_of("server.pem", server_.certificate().text),
                                 file_of("server.key", server_.key().text)));
  PemSource both = file_of("both.pem", server_.key().text + server_.certificate().text);
  EXPECT_TRUE(TlsContext::server(both, both)) << "one file may hold both";
  EXPECT_TRUE(
      TlsContext::client(file_of("list.pem", "# ours\n" + authority_.certificate().text + "\n# theirs\n" +
                                                 make_authority("another").certificate().text)));
}

TEST_F(TlsContextTest, AFileThatCannotBeReadIsNamedWithTheReason) {
  std::string missing = folder_.path() + "/missing.pem";
  expect_error(TlsContext::client({.file = missing, .text = ""}), TlsErrc::kUnreadable,
               {missing, "No such file or directory"});
  expect_error(TlsContext::client({.file = folder_.path(), .text = ""}), TlsErrc::kUnreadable,
               {folder_.path(), "Is a directory"});
  expect_error(TlsContext::server(server_.certificate(), {.file = missing, .text = ""}), TlsErrc::kUnreadable,
               {missing});
  expect_error(TlsContext::client(file_of("huge.pem", std::string(5 << 20, '\n'))), TlsErrc::kUnreadable,
               {"huge.pem", "more than"});
}

TEST_F(TlsContextTest, AListWithoutACertificateIsRefused) {
  expect_error(TlsContext::client({}), TlsErrc::kBadCertificate, {"the PEM text", "no certificate in it"});
  expect_error(TlsContext::client(file_of("empty.pem", "")), TlsErrc::kBadCertificate,
               {"empty.pem", "no certificate in it"});
  expect_error(TlsContext::client(server_.key()), TlsErrc::kBadCertificate, {"no certificate in it"});
}

TEST_F(TlsContextTest, ADamagedCertificateIsRefusedAndCounted) {
  std::string text = authority_.certificate().text;
  std::string damaged = text;
  damaged.replace(text.find('\n') + 1, 8, "AAAAAAAA");
  expect_error(TlsContext::client({.file = "", .text = text + damaged}), TlsErrc::kBadCertificate,
               {"certificate 2 of it makes no sense"});
  expect_error(TlsContext::client({.file = "", .text = text.substr(0, text.size() / 2)}),
               TlsErrc::kBadCertificate, {"certificate 1 of it makes no sense"});
}

TEST_F(TlsContextTest, AKeyThatCannotBeUsedIsRefused) {
  expect_error(TlsContext::server(server_.certificate(), server_.certificate()), TlsErrc::kBadKey,
               {"no private key in it"});
  expect_error(TlsContext::server(server_.certificate(), server_.key("secret")), TlsErrc::kBadKey,
               {"behind a password"});
  std::string damaged = server_.key().text;
  damaged.replace(damaged.find('\n') + 1, 8, "AAAAAAAA");
  expect_error(TlsContext::server(server_.certificate(), {.file = "", .text = damaged}), TlsErrc::kBadKey,
               {"the private key makes no sense"});
  expect_error(TlsContext::server(server_.certificate(), authority_.key()), TlsErrc::kKeyMismatch,
               {"is not that of the first certificate"});
}

TEST_F(TlsContextTest, TheSystemsListIsFoundOrItsPackageNamed) {
  auto context = TlsContext::client_of_system();
  if (context) {
    EXPECT_TRUE(context->is_client());
  } else {
    expect_error(context, TlsErrc::kUnreadable, {"ca-certificates"});
  }
}

}  // namespace
}  // namespace varve::runtime
