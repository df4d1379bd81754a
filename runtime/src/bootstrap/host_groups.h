// Which ranks share a host, where no launcher says so: by what their hosts call themselves.
#pragma once

#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"

namespace ddl::runtime {

/// The ranks of each host, hosts by name. Of a membership that has generation, size and host; collective over its ranks.
Result<std::vector<std::vector<int>>> groups_by_host_name(Bootstrap& bootstrap, const Membership& membership,
                                                          Deadline deadline);

}  // namespace ddl::runtime
