// ddlrun over the cluster's hosts, started from its head.
#pragma once

#include <string>
#include <vector>

#include "cluster/harness/host_processes.h"
#include "e2e/harness/job.h"
#include "e2e/harness/scratch.h"

namespace ddl::cluster {

/// A job of the login under test. It must leave no process and no file behind, on no host.
class HostJob {
 public:
  /// ddlrun's arguments.
  explicit HostJob(std::vector<std::string> arguments);
  /// The same, and its environment, input or terminal; settings.argv is what ddlrun is started by: salloc and its options.
  HostJob(std::vector<std::string> arguments, e2e::Command settings);

  e2e::Job& job() { return job_; }
  const Before& before() const { return before_; }
  Before& before() { return before_; }
  const std::string& out() const { return job_.out(); }
  const std::string& err() const { return job_.err(); }

  /// The exit code, once nothing is left.
  int wait();

  /// Its processes that are called so: "ddl-agent", "ddl-spawner", "ddlrun", "ssh", "sshd", or a rank's program. On one
  /// host, or on all if it is "".
  std::vector<HostProcess> processes(const std::string& name, const std::string& host = "") const;

 private:
  e2e::Scratch scratch_;
  Before before_;
  e2e::Job job_;
};

}  // namespace ddl::cluster
