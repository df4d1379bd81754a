// What ranks of different hosts say to each other outside of collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/src/channel/abort_notice.h"

namespace ddl::runtime {

/// Always whole and of one size, so that nothing that arrives is taken for a length. Plain data between machines of one
/// byte order, which the handshake has checked.
struct ControlFrame {
  enum class Kind : std::uint32_t {
    kAbort = 1,     ///< the job cannot go on; notice says why
    kFarewell = 2,  ///< the sender leaves in order and will say nothing more
  };
  static constexpr std::uint32_t kMagic = 0x44444C43;  // "DDLC"

  std::uint32_t magic = kMagic;
  Kind kind = Kind::kFarewell;
  AbortNotice notice;

  /// nullopt unless the bytes are a frame.
  static std::optional<ControlFrame> parse(std::span<const std::byte> bytes);
};
static_assert(sizeof(ControlFrame) == 520);

}  // namespace ddl::runtime
