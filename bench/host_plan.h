// What a benchmark on a cluster's hosts runs, and how.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/cluster.h"
#include "bench/entrant.h"
#include "bench/peers.h"
#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

struct HostPlan {
  struct Row {
    std::string of;   ///< the case
    Entrant entrant;  ///< with its command, or why it is absent
  };
  std::vector<Row> rows;  ///< within a case in the order of the table and the chart
  std::vector<std::pair<std::string, std::string>> cases;  ///< names and labels
  std::vector<Pairing> pairings;
};

std::vector<Entrant> entrants_of(const HostPlan& plan);

/// Runs the plan in blocks and fills the report but for its titles and aims. The CPU time is that of all hosts; a process left
/// behind on any of them is a failure.
void run_host_plan(Report& report, const HostPlan& plan, const ClusterHosts& hosts, const Site& site,
                   Settings settings);

}  // namespace ddl::bench
