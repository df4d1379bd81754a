// What two ranks write to each other on the connection of a pair: frames of a fixed size, some with bytes behind them.
//
// A connection belongs to the rank that has made it: that rank sends its messages over it, and gets answers back.
//
//   sender -> receiver   open; then eager (with the whole message), announce, data (with a part of a message), farewell
//   receiver -> sender   grant, taken, refused, dropped, credit, farewell
//
// Small messages go at once (eager), as far as the receiver's space for unexpected ones allows. Others are announced,
// and when the receiver has matched them, it grants their data; or, on one host, it has taken them from the sender's
// memory. Eager frames and announcements arrive in the order in which the messages were sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ddl/ddl.h"

namespace ddl::runtime {

/// Plain data between machines of one byte order, which the handshake has checked.
struct MessageFrame {
  enum class Kind : std::uint32_t {
    kOpen = 1,       ///< the first one: the sender has chosen this connection
    kEager = 2,      ///< a message, which follows
    kAnnounce = 3,   ///< a message, which is to be granted or taken
    kData = 4,       ///< a part of a message that was granted, which follows
    kGrant = 5,      ///< the message of this number may come
    kTaken = 6,      ///< it has been taken
    kRefused = 7,    ///< it does not fit what the receiver expects: bytes and dtype
    kCredit = 8,     ///< this number of bytes of eager messages have found their receiver
    kDropped = 9,    ///< the receiver has freed the process set
    kFarewell = 10,  ///< the rank leaves in order and sends nothing more
  };
  static constexpr std::uint32_t kMagic = 0x44444C4D;  // "DDLM"
  /// Messages of up to this size are eager.
  static constexpr std::uint64_t kMaxEager = std::uint64_t{32} << 10;
  /// The bytes of one data frame: what comes next in turn waits no longer than for these.
  static constexpr std::uint64_t kMaxData = std::uint64_t{1} << 20;

  std::uint32_t magic = kMagic;
  Kind kind = Kind::kOpen;
  std::uint32_t set = 0;  ///< the generation of the process set
  std::int32_t tag = 0;
  std::uint64_t number = 0;   ///< of an announced message, on its connection
  std::uint64_t bytes = 0;    ///< of the whole message; kCredit: that are given back
  std::uint64_t offset = 0;   ///< kData: of the part
  std::uint64_t address = 0;  ///< kAnnounce: in the sender's memory
  std::uint32_t length = 0;   ///< what follows
  ddl_dtype dtype = 0;
  std::uint64_t reserved = 0;

  static MessageFrame of(Kind kind, std::uint64_t number = 0) {
    MessageFrame frame;
    frame.kind = kind;
    frame.number = number;
    return frame;
  }
  bool is_of_sender() const {
    return kind == Kind::kOpen || kind == Kind::kEager || kind == Kind::kAnnounce || kind == Kind::kData;
  }
  /// nullopt unless the bytes are a frame whose lengths are within their limits.
  static std::optional<MessageFrame> parse(std::span<const std::byte> bytes);
};
static_assert(sizeof(MessageFrame) == 64);

}  // namespace ddl::runtime
