#include "net/tls_stream.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <cstring>

namespace ddl::net {

namespace {

constexpr std::size_t kMaxIdentityBytes = 256;
// The suite that every OpenSSL with TLS 1.3 has. Its hash is SHA-256, the default hash of external keys.
constexpr std::array<unsigned char, 2> kSuite = {0x13, 0x01};

Error tls_error(std::string what) {
  std::array<char, 256> text{};
  const unsigned long code = ::ERR_get_error();
  if (code != 0) ::ERR_error_string_n(code, text.data(), text.size());
  return Error(ErrorCode::kSystem, std::move(what) + (code != 0 ? std::string(": ") + text.data() : ""));
}

SSL_SESSION* session_of(SSL* ssl, const PresharedKey& key) {
  const SSL_CIPHER* cipher = ::SSL_CIPHER_find(ssl, kSuite.data());
  SSL_SESSION* session = ::SSL_SESSION_new();
  const bool made = cipher != nullptr && session != nullptr &&
                    ::SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                                  key.size()) == 1 &&
                    ::SSL_SESSION_set_cipher(session, cipher) == 1 &&
                    ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  ::SSL_SESSION_free(session);
  return nullptr;
}

}  // namespace

PresharedKey preshared_key(const JobKey& key, std::string_view identity) {
  const std::string text = "ddlrun link between agents, 1: " + std::string(identity);
  PresharedKey made{};
  unsigned int size = 0;
  const unsigned char* done = ::HMAC(::EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()),
                                     reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                     reinterpret_cast<unsigned char*>(made.data()), &size);
  DDL_CHECK(done != nullptr && size == made.size(), "HMAC-SHA256");
  return made;
}

struct TlsStream::State {
  ~State() {
    ::SSL_free(ssl);
    ::SSL_CTX_free(context);
    wipe(std::as_writable_bytes(std::span(key)));
  }

  static State& of(SSL* ssl) { return *static_cast<State*>(SSL_get_app_data(ssl)); }

  static int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_size,
                         SSL_SESSION** session) {
    State& state = of(ssl);
    *session = session_of(ssl, state.key);
    *id = reinterpret_cast<const unsigned char*>(state.identity.data());
    *id_size = state.identity.size();
    return *session != nullptr ? 1 : 0;
  }

  static int find_session(SSL* ssl, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
    State& state = of(ssl);
    *session = nullptr;  // then there is no key in common, and the handshake fails
    if (id_size == 0 || id_size > kMaxIdentityBytes) return 1;
    std::string identity(reinterpret_cast<const char*>(id), id_size);
    auto key = state.find_key(identity);
    if (!key) return 1;
    *session = session_of(ssl, *key);
    wipe(std::as_writable_bytes(std::span(*key)));
    state.identity = std::move(identity);
    return *session != nullptr ? 1 : 0;
  }

  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  UniqueFd socket;
  FindKey find_key;
  std::string identity;  // ours if we have connected, else the peer's
  PresharedKey key{};
  bool is_server = false;
  bool is_proved = false;
};

TlsStream::TlsStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsStream::TlsStream(TlsStream&&) noexcept = default;
TlsStream& TlsStream::operator=(TlsStream&&) noexcept = default;
TlsStream::~TlsStream() = default;

Result<TlsStream> TlsStream::make(std::unique_ptr<State> state, UniqueFd socket, bool is_server) {
  DDL_TRY(set_nonblocking(socket.get(), true));
  state->is_server = is_server;
  state->socket = std::move(socket);
  state->context = ::SSL_CTX_new(is_server ? ::TLS_server_method() : ::TLS_client_method());
  if (state->context == nullptr) return fail(tls_error("TLS"));
  ::SSL_CTX_set_options(state->context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_session_cache_mode(state->context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(state->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const bool is_set = ::SSL_CTX_set_min_proto_version(state->context, TLS1_3_VERSION) == 1 &&
                      ::SSL_CTX_set_max_proto_version(state->context, TLS1_3_VERSION) == 1 &&
                      ::SSL_CTX_set_ciphersuites(state->context, "TLS_AES_128_GCM_SHA256") == 1 &&
                      ::SSL_CTX_set_num_tickets(state->context, 0) == 1;
  if (!is_set) return fail(tls_error("TLS 1.3"));
  if (is_server) {
    ::SSL_CTX_set_psk_find_session_callback(state->context, State::find_session);
  } else {
    ::SSL_CTX_set_psk_use_session_callback(state->context, State::use_session);
  }
  state->ssl = ::SSL_new(state->context);
  if (state->ssl == nullptr || ::SSL_set_fd(state->ssl, state->socket.get()) != 1)
    return fail(tls_error("TLS"));
  SSL_set_app_data(state->ssl, state.get());
  is_server ? ::SSL_set_accept_state(state->ssl) : ::SSL_set_connect_state(state->ssl);
  return TlsStream(std::move(state));
}

Result<TlsStream> TlsStream::accepted(UniqueFd socket, FindKey find_key) {
  auto state = std::make_unique<State>();
  state->find_key = std::move(find_key);
  return make(std::move(state), std::move(socket), true);
}

Result<TlsStream> TlsStream::connected(UniqueFd socket, std::string identity, const PresharedKey& key) {
  auto state = std::make_unique<State>();
  state->identity = std::move(identity);
  state->key = key;
  return make(std::move(state), std::move(socket), false);
}

int TlsStream::fd() const { return state_->socket.get(); }

const std::string& TlsStream::peer_identity() const {
  static const std::string kNone;
  return state_->is_server && state_->is_proved ? state_->identity : kNone;
}

TlsStream::Step TlsStream::step_of(int result) {
  switch (::SSL_get_error(state_->ssl, result)) {
    case SSL_ERROR_NONE: return Step::kDone;
    case SSL_ERROR_WANT_READ: return Step::kWantRead;
    case SSL_ERROR_WANT_WRITE: return Step::kWantWrite;
    case SSL_ERROR_ZERO_RETURN: return Step::kClosed;
    default: return Step::kFailed;
  }
}

TlsStream::Step TlsStream::handshake() {
  ::ERR_clear_error();
  const Step step = step_of(::SSL_do_handshake(state_->ssl));
  if (step != Step::kDone) return step;
  // There are no certificates, so a handshake without the key should fail. This checks once more that the key was
  // used.
  if (::SSL_session_reused(state_->ssl) != 1) return Step::kFailed;
  state_->is_proved = true;
  return Step::kDone;
}

TlsStream::Step TlsStream::read(std::span<char> buffer, std::size_t& got) {
  ::ERR_clear_error();
  return step_of(::SSL_read_ex(state_->ssl, buffer.data(), buffer.size(), &got));
}

TlsStream::Step TlsStream::write(std::string_view bytes, std::size_t& put) {
  ::ERR_clear_error();
  return step_of(::SSL_write_ex(state_->ssl, bytes.data(), bytes.size(), &put));
}

void TlsStream::close_notify() {
  ::ERR_clear_error();
  (void)::SSL_shutdown(state_->ssl);
}

}  // namespace ddl::net
