// --check-hosts: compares the hosts and finds where they differ. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/head/check_hosts.h"

namespace ddl::launcher {

/// One property of one host.
struct HostValue {
  std::string text;      ///< to be displayed: "63 GB", "none"
  bool noticed = false;  ///< it differs from most hosts, or is too small by itself
};

/// One column: "cores", "memory". The names are those of the JSON, too.
struct HostColumn {
  std::string name;
  std::string heading;            ///< to be displayed: "/dev/shm"
  std::vector<HostValue> values;  ///< by host; empty and not noticed for a host that did not answer
};

struct HostComparison {
  std::vector<HostColumn> columns;
  /// One sentence for each noticed value, with all hosts that have it: "node3, node4: kernel is 5.10.0; most hosts
  /// have 6.1.0".
  std::vector<std::string> remarks;
  int failed = 0;  ///< hosts that did not answer
};

/// A value is noticed if at most half of the hosts that answered share it. Some columns have other rules. Memory:
/// it differs by more than 5 % from the median. Free space in /dev/shm and in the temporary directory: it is less
/// than half of the median or less than 64 MiB, or cannot be read. Clock: it differs by more than a second from
/// this machine's. libddl: also if there is none.
HostComparison compare_hosts(const std::vector<HostCheck>& hosts);

/// kSuccess if every host answered, whatever differs, else kStartFailure.
int exit_code_of(const HostComparison& comparison);

}  // namespace ddl::launcher
