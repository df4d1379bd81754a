// The message decoders of all directions with arbitrary frames: two bytes of type, then the payload. An accepted
// message must be unchanged after it is encoded and decoded again; all other input must give an error.
#include <cstdint>
#include <cstdlib>

#include "launcher/protocol/codec.h"
#include "launcher/protocol/member_messages.h"

namespace message = ddl::launcher::message;

namespace {

template <class Direction>
void check(const ddl::net::Frame& frame) {
  const auto decoded = message::decode<Direction>(frame);
  if (!decoded) {
    if (decoded.error().code() != ddl::ErrorCode::kProtocol) std::abort();
    return;
  }
  if (!message::is_in<Direction>(frame)) std::abort();
  const ddl::net::Frame encoded = message::encode(*decoded);
  if (encoded.type != frame.type) std::abort();
  const auto again = message::decode<Direction>(encoded);
  if (!again || *again != *decoded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  ddl::net::Frame frame;
  frame.type = static_cast<std::uint16_t>(data[0] | data[1] << 8);
  frame.payload.assign(reinterpret_cast<const char*>(data + 2), size - 2);
  check<message::HeadToAgent>(frame);
  check<message::AgentToHead>(frame);
  check<message::FleetReport>(frame);
  check<message::NodeReport>(frame);
  check<message::AgentToSpawner>(frame);
  check<message::SpawnerToAgent>(frame);
  check<message::HeadToJoiningAgent>(frame);
  check<message::ClientToJob>(frame);
  check<message::JobToClient>(frame);
  check<message::MemberReport>(frame);
  check<message::MemberOrder>(frame);
  return 0;
}
