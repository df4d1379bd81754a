// Jobs that Slurm runs: submitted by the login under test, in a folder that exists on all hosts.
#pragma once

#include <string>
#include <vector>

#include "cluster/harness/cluster.h"

namespace ddl::cluster {

/// A folder where the login under test submits jobs, which write their output there. Slurm does not notify anybody of
/// a job's progress, so this polls until a deadline.
class JobFolder : public SharedScratch {
 public:
  JobFolder();
  /// If the test has failed before it has ended its jobs, cancels them: others' would wait for their nodes.
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  struct CommandResult {
    int status = 0;
    std::string out;
    std::string err;
  };
  /// Runs a command here as the login under test.
  CommandResult run(const std::vector<std::string>& words) const;
  /// The output of a command, which must succeed.
  std::string checked_output(const std::vector<std::string>& words) const;
  /// ddlrun --slurm with these options, for this command.
  CommandResult slurm(const std::vector<std::string>& options, const std::vector<std::string>& command) const;

  /// The number of a job whose output goes to the file here.
  std::string submit(const std::string& output, std::vector<std::string> options,
                     const std::vector<std::string>& command) const;
  /// The number of a job of this script, submitted by sbatch with these options.
  std::string sbatch(const std::string& output, std::vector<std::string> options,
                     const std::string& script) const;
  /// Waits until all of them have ended, with any result.
  void await(const std::vector<std::string>& jobs) const;
  /// Waits until a job that is requeued has run again and ended.
  void await_second_run(const std::string& job) const;
  /// The same if a node is lost: Slurm requeues it when it counts the node as down, and may then start it at once.
  void await_run_without_lost_node(const std::string& job) const;
  /// Waits until the file is there.
  void await_file(const std::string& name) const;
  /// Waits until the file has this number of lines with the word.
  void await_lines(const std::string& name, const std::string& word, int count) const;
  std::string output(const std::string& name) const;

 private:
  void wait_until(const std::string& condition, int limit_seconds = 60) const;
};

/// Cancels a batch script with ddlrun and two ranks on two nodes that take half a second to end after SIGTERM. How many
/// of them had the time. execs: the script's shell becomes ddlrun.
int cancel_batch_script(const JobFolder& folder, bool execs);

}  // namespace ddl::cluster
