// Names of hosts and users: which ones may be arguments of ssh, how messages quote the others, and the names that a
// pattern such as "node[1-3,7]" stands for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

/// Accepts a host name, an alias of ssh's configuration, an IPv4 address, or an IPv6 address without brackets, with
/// or without a zone. Refuses text that ssh or a shell could interpret (a dash in front, blanks, quotes, "$"),
/// names of digits alone, which are a number of slots in the wrong place, and more than 253 characters (RFC 1035).
Status check_host_name(std::string_view name);

/// Accepts a name to log in as: letters, digits, and "._-+@", no dash in front, at most 64 characters.
Status check_user_name(std::string_view name);

/// The text in double quotes, for a message: cut after 60 characters; control and non-ASCII bytes are escaped, as
/// in \x1b.
std::string in_double_quotes(std::string_view text);

/// The name in lower case, for comparisons: DNS and ssh ignore case.
std::string host_key(std::string_view name);

/// All names that a pattern as in Slurm stands for, in order ("node[1-3,7]"); of several brackets the last one
/// counts fastest. Leading zeros are kept: "n[08-11]-ib0" is n08-ib0, n09-ib0, n10-ib0, n11-ib0. A pattern without
/// brackets is its own name. Error: brackets that do not contain numbers and ranges, a range that runs backwards or
/// whose ends have different padding; or more than `max_names` names, which are counted before any is made.
Result<std::vector<std::string>> expand_brackets(std::string_view pattern, std::size_t max_names);

}  // namespace ddl::launcher
