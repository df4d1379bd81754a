#include "runtime/src/wire/tcp_endpoint.h"

#include <climits>
#include <cstring>
#include <span>

#include "base/text.h"
#include "runtime/src/common/member.h"

namespace ddl::runtime {
namespace {

constexpr std::string_view kFailed = "failed: ";
constexpr std::string_view kTcp = "tcp ";
/// More than any host has; received values are not trusted.
constexpr std::size_t kMaxAddresses = 64;

}  // namespace

std::string TcpEndpoint::to_text() const {
  if (addresses.empty()) return std::string(kFailed) + failure;
  std::vector<std::string> parts;
  for (const net::SocketAddress& address : addresses) parts.push_back(address.to_text());
  return std::string(kTcp) + host + " " + std::to_string(pid) + " " + join(parts, " ");
}

Result<TcpEndpoint> TcpEndpoint::parse(std::string_view text) {
  TcpEndpoint endpoint;
  if (text.starts_with(kFailed)) {
    endpoint.failure = text.substr(kFailed.size());
    return endpoint;
  }
  if (!text.starts_with(kTcp)) {
    return fail(ErrorCode::kProtocol,
                "a rank's addresses are invalid: \"" + std::string(text.substr(0, 100)) + "\"");
  }
  const auto parts = split(text.substr(kTcp.size()), ' ');
  const auto pid = parts.size() < 3 ? std::nullopt : parse_integer(parts[1]);
  if (!pid || *pid < 0 || *pid > INT_MAX || parts[0].empty() || parts[0].size() >= sizeof(HostField)) {
    return fail(ErrorCode::kProtocol, "a rank's addresses come without its host and pid");
  }
  endpoint.host = parts[0];
  endpoint.pid = static_cast<int>(*pid);
  for (const std::string_view part : std::span(parts).subspan(2)) {
    DDL_ASSIGN(address, net::SocketAddress::parse(part));
    if (endpoint.addresses.size() == kMaxAddresses)
      return fail(ErrorCode::kProtocol,
                  "a rank offers more than " + std::to_string(kMaxAddresses) + " addresses");
    endpoint.addresses.push_back(address);
  }
  return endpoint;
}

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
  if (hello.purpose < LinkPurpose::kControl || hello.purpose > LinkPurpose::kProbe) {
    return fail(ErrorCode::kProtocol, "a connection for an unknown purpose");
  }
  return hello;
}

}  // namespace ddl::runtime
