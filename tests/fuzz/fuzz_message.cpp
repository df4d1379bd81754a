// The message decoder on arbitrary frames: two bytes of type, then the payload. What it accepts must survive being
// encoded and decoded again; everything else must be an error and nothing worse.
#include <cstdint>
#include <cstdlib>

#include "launcher/protocol/codec.h"

namespace message = ddl::launcher::message;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  ddl::net::Frame frame;
  frame.type = static_cast<std::uint16_t>(data[0] | data[1] << 8);
  frame.payload.assign(reinterpret_cast<const char*>(data + 2), size - 2);
  const auto decoded = message::decode(frame);
  if (!decoded) {
    if (decoded.error().code() != ddl::ErrorCode::kProtocol) std::abort();
    return 0;
  }
  if (decoded->index() != frame.type) std::abort();
  const auto again = message::decode(message::encode(*decoded));
  if (!again || *again != *decoded) std::abort();
  return 0;
}
