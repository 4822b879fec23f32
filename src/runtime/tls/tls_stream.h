// TLS over any Stream: both ends of it. The simulator's network carries it as the real one does.
#pragma once

#include <memory>
#include <string>

#include "runtime/network.h"
#include "runtime/tls/tls_context.h"

namespace varve::runtime {

// The streams that these give keep Stream's promises, and:
// - read_some() gives 0 only if the other side said that it ends; a connection that ends without it may have been cut
//   by anybody, and is kReset;
// - close() says so to the other side if that needs no waiting: always, unless a write is under way or stuck;
// - a write that was stopped may have left a part of a record behind, so that later writes fail as well.
// On failure the plain stream is closed. kClosed: asked to stop; kTimeout: the deadline passed; kUntrusted, with what
// is wrong; kReset; kBadAddress: `host` cannot be verified.

// On the stream's executor, with a context of clients. `host`, a name or an IP number, is whom the certificate has to
// be for. It may need two round trips, and some milliseconds of computing.
Task<NetResult<std::unique_ptr<Stream>>> tls_connect(TlsContext context, std::unique_ptr<Stream> plain,
                                                     std::string host, MonotonicTime deadline);

// The same for a connection that was accepted, with a context of servers. Clients show no certificate.
Task<NetResult<std::unique_ptr<Stream>>> tls_accept(TlsContext context, std::unique_ptr<Stream> plain,
                                                    MonotonicTime deadline);

}  // namespace varve::runtime
