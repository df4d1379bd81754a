#include "runtime/src/link/control_frame.h"

#include <cstring>

namespace ddl::runtime {

std::optional<ControlFrame> ControlFrame::parse(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(ControlFrame)) return std::nullopt;
  ControlFrame frame;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  if (frame.magic != kMagic) return std::nullopt;
  if (frame.kind == Kind::kFarewell) return frame;
  if (frame.kind != Kind::kAbort || !is_abort_reason(static_cast<std::uint32_t>(frame.notice.reason)))
    return std::nullopt;
  return frame;
}

}  // namespace ddl::runtime
