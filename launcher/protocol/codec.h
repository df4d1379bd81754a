// Messages to frames and back: control messages as CBOR, output and standard input as raw bytes behind a
// short header. The shape of CBOR is checked before it is parsed.
//
// A Direction is one of the variants of messages.h, spawner_messages.h and control_messages.h. A type has the
// same number on the wire in all of them, so that a decoder can name a message of another direction. Both sides
// are the same version, which the greeting, Facts and each request of a client check.
#pragma once

#include "base/error.h"
#include "launcher/protocol/link.h"
#include "launcher/protocol/messages.h"
#include "launcher/protocol/spawner_messages.h"
#include "net/frame.h"

namespace ddl::launcher::message {

/// The frame of a message, ready for Link::send.
template <class Direction>
net::Frame encode(const Direction& message);
/// Error kProtocol for an unknown type, a type of another direction, malformed CBOR, or a missing or
/// ill-typed field: a noun phrase with the type and the direction, "a malformed Launch message from head to
/// agent: ...". Never throws.
template <class Direction>
Result<Direction> decode(const net::Frame& frame);
/// Whether the frame's type belongs to the direction. Does not read the payload.
template <class Direction>
bool is_in(const net::Frame& frame);

template <class Direction>
void send(Link& link, const Direction& message) {
  const net::Frame frame = encode(message);
  link.send(frame.type, frame.payload);
}

}  // namespace ddl::launcher::message
