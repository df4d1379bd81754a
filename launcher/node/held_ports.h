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
  HeldPorts() = default;
  /// This number of them, or fewer if the machine has no more. The kernel chooses them.
  static HeldPorts hold(std::size_t count);

  const std::vector<int>& numbers() const { return numbers_; }

 private:
  std::vector<UniqueFd> sockets_;
  std::vector<int> numbers_;
};

}  // namespace ddl::launcher
