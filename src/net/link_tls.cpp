#include "net/link_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace tandem::net {
namespace {

constexpr std::string_view kIdentity = "tandem-link-1";
constexpr size_t kMinSecretBytes = 16;
constexpr std::array<uint8_t, 2> kCipher = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256

#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;  // SO_NOSIGPIPE is set
#endif

// A BIO over send() and recv(), since OpenSSL's own raises SIGPIPE.

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio), data, static_cast<size_t>(size), kSendFlags);
  if (sent < 0 && would_block()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(socket_of(bio), data, static_cast<size_t>(size), 0);
  if (got < 0 && would_block()) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

long bio_ctrl(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

BIO* make_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tandem socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_ctrl);
    return made;
  }();
  BIO* bio = BIO_new(method);
  TANDEM_CHECK(bio, "no memory for a BIO");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

// The pre-shared key.

const TlsContext& context_of(SSL* ssl) {
  return *static_cast<const TlsContext*>(SSL_get_app_data(ssl));
}

SSL_SESSION* make_key_session(SSL* ssl) {
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kCipher.data());
  SSL_SESSION* session = SSL_SESSION_new();
  const auto& key = context_of(ssl).key();
  const bool good = cipher && session &&
                    SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
                    SSL_SESSION_set_cipher(session, cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  TANDEM_CHECK(good, "OpenSSL lacks TLS 1.3 with AES-128-GCM");
  return session;
}

int offer_key(
    SSL* ssl, const EVP_MD* /*hash*/, const uint8_t** id, size_t* size, SSL_SESSION** to) {
  *id = reinterpret_cast<const uint8_t*>(kIdentity.data());
  *size = kIdentity.size();
  *to = make_key_session(ssl);
  return 1;
}

int find_key(SSL* ssl, const uint8_t* identity, size_t size, SSL_SESSION** to) {
  const bool ours = size == kIdentity.size() && std::memcmp(identity, kIdentity.data(), size) == 0;
  *to = ours ? make_key_session(ssl) : nullptr;
  return 1;
}

std::string last_problem(std::string_view otherwise) {
  const unsigned long code = ERR_get_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason ? std::string(reason) : std::string(otherwise);
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::make(std::span<const std::byte> secret) {
  if (secret.size() < kMinSecretBytes) {
    return Error{ErrorCode::kInvalid, fmt::format("a link's secret has {} bytes, at least {}",
                                                  secret.size(), kMinSecretBytes)};
  }
  auto made = std::make_shared<TlsContext>();
  made->key_.resize(32);
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const uint8_t*>(kIdentity.data()), kIdentity.size(), made->key_.data(),
       &size);
  made->context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = made->context_.get();
  TANDEM_CHECK(context && size == 32, "OpenSSL cannot make a context");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_psk_use_session_callback(context, offer_key);
  SSL_CTX_set_psk_find_session_callback(context, find_key);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  return made;
}

TlsSession::TlsSession(std::shared_ptr<TlsContext> context, Fd socket, Side side)
    : context_(std::move(context)), socket_(std::move(socket)), ssl_(nullptr, &SSL_free) {
  ssl_.reset(SSL_new(context_->get()));
  TANDEM_CHECK(ssl_, "no memory for a TLS session");
  SSL_set_app_data(ssl_.get(), context_.get());
  BIO* bio = make_bio(socket_.get());
  SSL_set_bio(ssl_.get(), bio, bio);
  if (side == Side::kClient) {
    // A certificate can never stand in for the key: none is trusted. (The other side has none.)
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

TlsSession::Progress TlsSession::handshake() {
  ERR_clear_error();
  const int rc = SSL_do_handshake(ssl_.get());
  if (rc != 1) return progress_of(rc);
  if (SSL_session_reused(ssl_.get()) == 1) return Progress::kDone;
  problem_ = "the peer did not use the pre-shared key";
  return Progress::kFailed;
}

TlsSession::Moved TlsSession::read(std::span<std::byte> into) {
  ERR_clear_error();
  size_t bytes = 0;
  const int rc = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
  return rc == 1 ? Moved{Progress::kDone, bytes} : Moved{progress_of(rc), 0};
}

TlsSession::Moved TlsSession::write(std::span<const std::byte> from) {
  ERR_clear_error();
  size_t bytes = 0;
  const int rc = SSL_write_ex(ssl_.get(), from.data(), from.size(), &bytes);
  return rc == 1 ? Moved{Progress::kDone, bytes} : Moved{progress_of(rc), 0};
}

void TlsSession::shutdown() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

TlsSession::Progress TlsSession::progress_of(int rc) {
  switch (SSL_get_error(ssl_.get(), rc)) {
    case SSL_ERROR_WANT_READ:
      return Progress::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return Progress::kWantsWrite;
    case SSL_ERROR_ZERO_RETURN:
      problem_ = "the peer closed the link";
      return Progress::kClosed;
    case SSL_ERROR_SYSCALL:
      problem_ = errno == 0 ? "the connection ended" : std::strerror(errno);
      ERR_clear_error();
      return Progress::kClosed;
    default:
      if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        problem_ = "the connection ended";
        ERR_clear_error();
        return Progress::kClosed;
      }
      problem_ = last_problem("TLS failed");
      return Progress::kFailed;
  }
}

}  // namespace tandem::net
