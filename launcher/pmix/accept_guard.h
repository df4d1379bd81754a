// Who may connect to the PMIx server: processes of the job's own user, and no others.
#pragma once

#include "base/error.h"

namespace ddl::launcher {

// libpmix listens on a TCP port of the loopback interface, to which every user of the node can connect, and reads
// lengths that a peer sends before it knows whose process the peer is. So a connection of another user must not get
// that far. libpmix calls accept(); this program exports a function of that name, and the dynamic linker gives
// libraries the executable's. That function accepts, asks the kernel to which user the other end belongs, and closes
// the connection of another user. It does so for whatever library calls it; the program's own calls are passed on
// unchanged.
//
// libpmix reads the first message of a connection with blocking calls of recv(), on the thread that accepts. So recv()
// is this program's, too: if a peer sends nothing for some seconds, it returns an error, after which libpmix closes the
// connection.
//
// A libpmix that is linked statically must call ddl_pmix_accept() and ddl_pmix_recv() instead, by renamed symbols
// (scripts/packaging/portable.sh); the configuration of the build checks that it does.

/// To be called before libpmix listens. Error kUnavailable: accept() or recv() is not guarded in this program, or this
/// kernel does not say to whom sockets belong.
Status check_accept_guard();

}  // namespace ddl::launcher
