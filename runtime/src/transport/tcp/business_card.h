// Where a rank can be reached from other hosts, as text that travels through the bootstrap.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"

namespace ddl::runtime {

struct BusinessCard {
  /// The rank's process.
  std::string host;
  int pid = 0;
  std::vector<net::SocketAddress> addresses;
  /// Why there are none: a rank that cannot listen says so to those that would call it.
  std::string failure;

  std::string to_text() const;
  static Result<BusinessCard> parse(std::string_view text);
};

}  // namespace ddl::runtime
