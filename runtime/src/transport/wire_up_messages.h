// What the ranks of one host say to their leader when they meet. Plain data between processes of one machine and one
// version of libddl, so it is sent as it lies in memory.
//
//   member -> leader   Hello
//   leader -> member   Welcome, one MemberEntry per member; the descriptors of the shared memory and of the doorbell and
//                      one pidfd per member travel with it, in batches of kMaxPassedFds, each further batch with one
//                      more byte
//   member -> leader   one byte: mapped
//   leader -> member   one byte: everybody has mapped
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/src/channel/text_field.h"
#include "runtime/src/transport/cpu_set.h"

namespace ddl::runtime {

inline constexpr std::uint32_t kWireUpMagic = 0x44444C57;  // "DDLW"
inline constexpr std::uint32_t kWireUpVersion = 2;

using Nonce = std::array<std::uint8_t, 16>;

struct Hello {
  std::uint32_t magic = kWireUpMagic;
  std::uint32_t version = kWireUpVersion;
  Nonce nonce{};
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
  HostField host;
  CpuSet cpus;
};

struct Welcome {
  std::uint32_t magic = kWireUpMagic;
  std::uint32_t version = kWireUpVersion;
  std::int32_t members = 0;
  std::int32_t cpus = 0;
};

struct MemberEntry {
  std::int32_t rank = 0;
  std::int32_t pid = 0;
  HostField host;
};

/// The bytes of a message, to be sent or filled.
template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}
template <class T>
std::span<std::byte> writable_bytes_of(T& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

}  // namespace ddl::runtime
