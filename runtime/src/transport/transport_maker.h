// How the transports of a process set come about: each set has its own.
#pragma once

#include <functional>
#include <memory>

#include "runtime/src/fault.h"
#include "runtime/src/transport/link_transport.h"
#include "runtime/src/transport/transport.h"

namespace ddl::runtime {

/// fault outlives what is made.
struct TransportMaker {
  std::function<std::unique_ptr<Transport>(const Membership&, FaultInjector& fault)> within_host;
  std::function<std::unique_ptr<LinkTransport>(const Membership&, FaultInjector& fault)> between_hosts;
};

}  // namespace ddl::runtime
