// Messages to frames and back: control messages as CBOR, output and standard input as raw bytes behind a short header.
#pragma once

#include "launcher/fleet/link.h"
#include "launcher/message/message.h"
#include "net/frame.h"

namespace ddl::launcher::message {

/// The frame of a message, ready for Link::send.
net::Frame encode(const Any& message);
/// Error kProtocol for an unknown type, malformed CBOR, or a missing or ill-typed field. Never throws.
Result<Any> decode(const net::Frame& frame);

inline void send(Link& link, const Any& message) {
  const net::Frame frame = encode(message);
  link.send(frame.type, frame.payload);
}

}  // namespace ddl::launcher::message
