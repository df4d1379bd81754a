#include "runtime/src/transport/tcp/link_hello.h"

#include <cstring>

namespace ddl::runtime {

static_assert(sizeof(LinkHello) <= net::kIntroductionBytes);

net::Introduction LinkHello::to_introduction() const {
  net::Introduction introduction{};
  std::memcpy(introduction.data(), this, sizeof *this);
  return introduction;
}

Result<LinkHello> LinkHello::parse(const net::Introduction& introduction) {
  LinkHello hello;
  std::memcpy(&hello, introduction.data(), sizeof hello);
  if (hello.byte_order != kByteOrder) {
    return fail(ErrorCode::kUnavailable, "the other host has another byte order");
  }
  if (hello.version != kVersion) {
    return fail(ErrorCode::kUnavailable, "rank " + std::to_string(hello.rank) + " on " + hello.host.str() +
                                             " uses another version of libddl");
  }
  if (hello.purpose < LinkPurpose::kControl || hello.purpose > LinkPurpose::kKnock) {
    return fail(ErrorCode::kProtocol, "a connection for an unknown purpose");
  }
  return hello;
}

}  // namespace ddl::runtime
