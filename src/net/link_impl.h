// Makes a Link from a session whose handshake is done: shared by connecting and listening.
#pragma once

#include <memory>

#include "net/link.h"

namespace tandem::net {

class TlsSession;

std::unique_ptr<Link> make_link(std::unique_ptr<TlsSession> session, const LinkOptions& options);

}  // namespace tandem::net
