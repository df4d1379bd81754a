// Messages to frames and back: control messages as CBOR, output and standard input as raw bytes behind a short header. The
// shape of CBOR is checked before it is parsed.
#pragma once

#include <string_view>

#include "base/error.h"
#include "launcher/protocol/link.h"
#include "launcher/protocol/messages.h"
#include "net/frame.h"

namespace ddl::launcher::message {

// Whether bytes are CBOR that may be handed to a parser that recurses.

/// Success if bytes are one whole item of plain CBOR (RFC 8949): of definite length, without tags, nested at most
/// kMaxCborDepth deep, its floating-point numbers finite and at most kMaxCborNumber. Error kProtocol otherwise.
/// Needs no memory and does not recurse, whatever the bytes are.
Status check_cbor_shape(std::string_view bytes);

inline constexpr int kMaxCborDepth = 16;
/// Numbers with a fraction are seconds: everything up to this also fits an int.
inline constexpr double kMaxCborNumber = 1e9;

// Messages to frames and back: control messages as CBOR, output and standard input as raw bytes behind a short header.

/// The frame of a message, ready for Link::send.
net::Frame encode(const Any& message);
/// Error kProtocol for an unknown type, malformed CBOR, or a missing or ill-typed field. Never throws.
Result<Any> decode(const net::Frame& frame);

inline void send(Link& link, const Any& message) {
  const net::Frame frame = encode(message);
  link.send(frame.type, frame.payload);
}

}  // namespace ddl::launcher::message
