// TCP ports of this machine that the kernel gives to nobody else, for the servers that programs of ranks open.
#pragma once

#include <cstddef>
#include <vector>

#include "base/fd.h"

namespace ddl::launcher {

/// Sockets that are bound and do not listen, with SO_REUSEADDR. As long as they live, the kernel does not choose their
/// ports for others, and a program that sets SO_REUSEADDR, as PyTorch's store, gRPC, TensorFlow and libuv do, can bind
/// and listen beside them, on IPv4 and IPv6. A program that does not set it is refused.
class HeldPorts {
 public:
  /// Holds this number of further ports, or fewer if the machine has no more, and returns them. The kernel chooses
  /// them.
  std::vector<int> hold(int count);

 private:
  std::vector<UniqueFd> sockets_;
};

/// False: nothing listens on this held port, on any address. It takes some microseconds whatever the machine has open:
/// a further holder is bound for that time, which the kernel refuses if there is a listener (inet_csk_bind_conflict).
bool may_have_listener(int port);

}  // namespace ddl::launcher
