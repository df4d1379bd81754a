// Whether all ranks of all hosts called the same: found out along the canonical tree, so that every rank finds the same
// pair and says the same sentence.
#pragma once

#include <cstdint>

#include "runtime/src/channel/call.h"
#include "runtime/src/channel/channel.h"
#include "runtime/src/channel/text_field.h"

namespace ddl::runtime {

/// Who called what. Plain data between hosts.
struct CallStamp {
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
  HostField host;
  Call call;
};

struct Verdict {
  CallStamp first;  ///< the first rank's, with which all others are compared
  CallStamp odd;    ///< the first that called something else
  std::uint32_t has_odd = 0;
  std::uint32_t reserved = 0;

  /// Of one host, after an exchange of its channel.
  static Verdict of_host(const Channel& channel);
  /// Of neighbouring hosts: left holds the lower ones.
  static Verdict merge(const Verdict& left, const Verdict& right);
  /// Ok, or the mismatch.
  Outcome outcome() const;
};

}  // namespace ddl::runtime
