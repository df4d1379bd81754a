// ddlrun over the hosts of the cluster, started on its head.
#pragma once

#include <string>
#include <vector>

#include "cluster/harness/host_processes.h"
#include "e2e/harness/job.h"
#include "e2e/harness/scratch.h"

namespace ddl::cluster {

/// A job of the login under test. It must leave no process and no file on any host.
class HostJob {
 public:
  /// arguments: of ddlrun.
  explicit HostJob(std::vector<std::string> arguments);
  /// The same with environment, input or terminal; settings.argv is a command that starts ddlrun: salloc and its
  /// options.
  HostJob(std::vector<std::string> arguments, e2e::Command settings);

  e2e::Job& job() { return job_; }
  const Before& before() const { return before_; }
  Before& before() { return before_; }
  const std::string& out() const { return job_.out(); }
  const std::string& err() const { return job_.err(); }

  /// Waits until no process is left; returns the exit code.
  int wait();

  /// Its processes with this name: "ddl-agent", "ddl-spawner", "ddlrun", "ssh", "sshd", or a rank's program. On one
  /// host, or on all if host is "".
  std::vector<HostProcess> processes(const std::string& name, const std::string& host = "") const;

 private:
  e2e::Scratch scratch_;
  Before before_;
  e2e::Job job_;
};

}  // namespace ddl::cluster
