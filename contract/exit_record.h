// What a rank leaves behind for its launcher, who reads it when the rank has ended: memory that both share, so it is
// whole however the rank ends, and needs no library, no round trip and no launcher that still answers.
#pragma once

#include <cstdint>

namespace ddl::contract {

/// env::kExitRecord, "FD:OFFSET", says where it lies in an inherited memfd that is sealed against another size. libddl fills
/// it in when the context was aborted.
struct ExitRecord {
  static constexpr std::uint32_t kMagic = 0x444C'5831;
  static constexpr std::int32_t kNone = -1;

  std::uint32_t magic = kMagic;
  std::int32_t gone_rank = kNone;  ///< the rank that libddl's errors name: it died, left, or gave up first
};
static_assert(sizeof(ExitRecord) == 8);

}  // namespace ddl::contract
