// --check-hosts: the hosts beside each other, and where they differ. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/head/check_hosts.h"

namespace ddl::launcher {

/// One thing that a host has.
struct HostValue {
  std::string text;      ///< for a person: "63 GB", "none"
  bool noticed = false;  ///< it differs from most hosts', or is too little by itself
};

/// One column: "cores", "memory". The names are those of the JSON, too.
struct HostColumn {
  std::string name;
  std::string heading;            ///< for a person: "/dev/shm"
  std::vector<HostValue> values;  ///< by host; of one that did not answer empty and not noticed
};

struct HostComparison {
  std::vector<HostColumn> columns;
  /// A sentence for everything noticed, with all hosts that it is true of: "node3, node4: kernel is 5.10.0; most hosts
  /// have 6.1.0".
  std::vector<std::string> remarks;
  int failed = 0;  ///< hosts that did not answer
};

/// A value is noticed if no more than half of the hosts that answered share it; of memory, if it is 5 % away from the
/// median; of room in /dev/shm and the temporary directory, if it is less than half of the median or than 64 MiB; of
/// the clock, if it is more than a second away from this machine's; of libddl, if there is none.
HostComparison compare_hosts(const std::vector<HostCheck>& hosts);

/// kSuccess if every host answered, whatever differs, else kStartFailure.
int exit_code_of(const HostComparison& comparison);

}  // namespace ddl::launcher
