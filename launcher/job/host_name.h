// Names of hosts and users: which ones may become words of ssh's command line, how messages quote the others, and the
// names that a pattern such as "node[1-3,7]" stands for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

// Names that may become words of ssh's command line, and how messages quote those that may not.

/// A host name, an alias of ssh's configuration, an IPv4 address, or an IPv6 address without brackets, with or without
/// a zone. Refused: whatever else ssh or a shell could make something of (a dash in front, blanks, quotes, "$"), names
/// of digits alone, which are a number of slots in the wrong place, and more than 253 characters (RFC 1035).
Status check_host_name(std::string_view name);

/// A name to log in as: letters, digits, and "._-+@", no dash in front, at most 64 characters.
Status check_user_name(std::string_view name);

/// The text in double quotes, for a message: cut after 60 characters, with \x1b for what a terminal would act on.
std::string in_double_quotes(std::string_view text);

/// The form under which two spellings of a host are the same: DNS and ssh compare without case.
std::string host_key(std::string_view name);

// "node[1-3,7]": many names in one, as Slurm writes them.

/// Every name that the pattern stands for, in its order; of several brackets the last one counts fastest. Zeros in
/// front are kept: "n[08-11]-ib0" is n08-ib0, n09-ib0, n10-ib0, n11-ib0. A pattern without brackets is its own name.
/// Error: brackets that hold no numbers or ranges, that run backwards, whose ends are padded differently; or more than
/// `most` names. Nothing is made of them before they have been counted.
Result<std::vector<std::string>> expand_brackets(std::string_view pattern, std::size_t most);

}  // namespace ddl::launcher
