// Names that may become words of ssh's command line, and how messages quote those that may not.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::launcher {

/// A host name, an alias of ssh's configuration, an IPv4 address, or an IPv6 address without brackets, with or without
/// a zone. Refused: whatever else ssh or a shell could make something of (a dash in front, blanks, quotes, "$"), names
/// of digits alone, which are a number of slots in the wrong place, and more than 253 characters (RFC 1035).
Status check_host_name(std::string_view name);

/// A name to log in as: letters, digits, and "._-+@", no dash in front, at most 64 characters.
Status check_user_name(std::string_view name);

/// The text in double quotes, for a message: cut after 60 characters, with \x1b for what a terminal would act on.
std::string quoted(std::string_view text);

/// The form under which two spellings of a host are the same: DNS and ssh compare without case.
std::string host_key(std::string_view name);

}  // namespace ddl::launcher
