#include "runtime/src/message/frame.h"

#include <cstring>

namespace ddl::runtime {

std::optional<MessageFrame> MessageFrame::parse(std::span<const std::byte> bytes) {
  MessageFrame frame;
  if (bytes.size() != sizeof frame) return std::nullopt;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  if (frame.magic != kMagic || frame.kind < Kind::kOpen || frame.kind > Kind::kFarewell) return std::nullopt;
  switch (frame.kind) {
    case Kind::kEager:
      if (frame.length > kMaxEager || frame.length != frame.bytes || frame.tag < 0) return std::nullopt;
      break;
    case Kind::kAnnounce:
      if (frame.length != 0 || frame.tag < 0) return std::nullopt;
      break;
    case Kind::kData:
      if (frame.length == 0 || frame.length > kMaxData || frame.offset > frame.bytes ||
          frame.length > frame.bytes - frame.offset)
        return std::nullopt;
      break;
    default:
      if (frame.length != 0) return std::nullopt;
  }
  return frame;
}

}  // namespace ddl::runtime
