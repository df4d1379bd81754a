// What --check-hosts prints, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/reports/console.h"
#include "launcher/head/check_hosts.h"
#include "launcher/head/host_comparison.h"

namespace ddl::cli {

/// A table with a line for each host, in their order; a "!" follows each value that launcher::compare_hosts()
/// noticed. Then the remarks, and the number of hosts that answered. style: of standard output. Pure.
std::string check_hosts_text(const std::vector<launcher::HostCheck>& hosts,
                             const launcher::HostComparison& comparison, const TerminalStyle& style);

/// One line of JSON, with its newline; docs/reference/ddlrun.md has the schema. Pure.
std::string check_hosts_json(const std::vector<launcher::HostCheck>& hosts,
                             const launcher::HostComparison& comparison);

}  // namespace ddl::cli
