// Frames on a byte stream: a fixed header (magic, type, payload length), then the payload.
//
// Layout of the header, little-endian: u16 magic, u16 type, u32 payload length. The length is capped before anything
// is allocated; a stream that breaks the rules is an error for good, because framing cannot be found again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::net {

inline constexpr std::size_t kFrameHeaderSize = 8;
inline constexpr std::uint16_t kFrameMagic = 0xDD17;
/// No frame may be larger; a job description of 4,096 ranks fits many times.
inline constexpr std::size_t kMaxFramePayload = std::size_t{64} << 20;

struct Frame {
  std::uint16_t type = 0;
  std::string payload;  ///< raw bytes
};

/// Appends one frame to out. payload is at most kMaxFramePayload bytes.
void append_frame(std::string& out, std::uint16_t type, std::string_view payload);

/// Takes bytes as they arrive and gives whole frames back. Holds at most one unfinished frame and one read's bytes.
class FrameDecoder {
 public:
  explicit FrameDecoder(std::size_t max_payload = kMaxFramePayload) : max_payload_(max_payload) {}

  void append(std::span<const std::byte> bytes);
  /// The next whole frame; nullopt when more bytes are needed; an error, from then on, after bytes that are not a
  /// frame.
  Result<std::optional<Frame>> next();
  /// True if the stream may end here: no frame has been begun.
  bool at_boundary() const { return buffer_.size() == consumed_; }

 private:
  std::size_t max_payload_;
  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace ddl::net
