// How ranks connect for messages: each listens from the start, and connects to another one when it first has something
// for it. On one host by Unix sockets, between hosts by TCP; both sides prove that they know the job's key.
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/handshake.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/member.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/wire/acceptor.h"
#include "runtime/src/wire/dialer.h"
#include "runtime/src/wire/shared_key.h"
#include "runtime/src/wire/tcp_endpoint.h"

namespace ddl::runtime {

/// Not thread-safe.
class MessageSockets {
 public:
  struct Made {
    bool is_own = false;  ///< this rank has connected
    Member peer;
    pid_t pid = 0;  ///< of the peer, as this process sees it; 0: on another host, or not visible
    UniqueFd socket;
  };

  /// settings outlive this.
  explicit MessageSockets(const Settings& settings) : settings_(settings) {}

  /// Listens, and puts into the bootstrap what others need to connect. A fence follows, also after an error, which is
  /// reported when a connection is needed.
  Status publish(Bootstrap& bootstrap);
  std::vector<int> listeners() const;

  /// Before connections are made or accepted.
  Status start(Bootstrap& bootstrap);
  /// Begins to connect to a rank. An error: it cannot be reached by any means.
  Status dial(Bootstrap& bootstrap, int rank);

  /// Some rank connects to this one, or this one to another.
  bool is_connecting() const {
    return !local_callers_.empty() || !welcomed_.empty() || !locals_.empty() || !dialers_.empty() ||
           (acceptor_ && !acceptor_->next_deadline().is_never());
  }
  /// The descriptors and events that poll() is to wait for, and until when.
  void append_entries(std::vector<pollfd>& entries) const;
  Deadline next_deadline() const;
  /// Progresses as far as possible without waiting. gone: ranks that listen no more.
  Status advance(std::vector<Made>& made, std::vector<int>& gone);
  /// Accepts and connects no more.
  void close();

 private:
  /// A handshake with a rank of this host, by a Unix socket.
  struct Local {
    int rank = 0;  ///< that this rank connects to
    std::string name;
    std::optional<net::HandshakeSocket> handshake;
    Deadline again = Deadline::never();  ///< the rank's queue of callers was full
  };

  Status prepare(Bootstrap& bootstrap);
  Status dial_and_accept(std::vector<Made>& made, std::vector<int>& gone);
  LinkHello hello_to(int rank) const;
  bool belongs(const LinkHello& caller) const;
  Status begin_local(Local& local) const;
  Status accept_local();
  void answer(std::list<net::HandshakeSocket>& callers, std::vector<Made>& made) const;
  Status dial_local(std::vector<Made>& made, std::vector<int>& gone);
  Status dial_remote(std::vector<Made>& made, std::vector<int>& gone);

  const Settings& settings_;
  Membership membership_;
  std::string failure_;  ///< why publish() has failed
  SharedKey key_{"ddl.msgkey"};
  std::string name_;  ///< of the Unix socket
  UniqueFd local_listener_;
  std::vector<net::InterfaceAddress> addresses_;
  std::optional<Acceptor> acceptor_;               ///< null on one host
  std::list<net::HandshakeSocket> local_callers_;  ///< that have not proved themselves
  std::list<net::HandshakeSocket> welcomed_;       ///< of other hosts, accepted
  std::list<Local> locals_;
  std::list<Dialer> dialers_;
};

}  // namespace ddl::runtime
