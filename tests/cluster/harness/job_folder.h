// Jobs that Slurm runs: submitted by the login under test, in a folder that all hosts see.
#pragma once

#include <string>
#include <vector>

#include "cluster/harness/cluster.h"

namespace ddl::cluster {

/// A folder where the login under test submits jobs, which write there. Slurm tells nobody when a job is where it should be: it
/// is asked again and again, until a deadline.
class JobFolder : public SharedScratch {
 public:
  JobFolder();

  struct Said {
    int status = 0;
    std::string out;
    std::string err;
  };
  /// Runs a command here as the login under test.
  Said run(const std::vector<std::string>& words) const;
  /// What it prints; it must succeed.
  std::string must_say(const std::vector<std::string>& words) const;
  /// ddlrun --slurm with these options, for this command.
  Said slurm(const std::vector<std::string>& options, const std::vector<std::string>& command) const;

  /// The number of a job whose output goes to the file here.
  std::string submit(const std::string& output, std::vector<std::string> options,
                     const std::vector<std::string>& command) const;
  /// Until all of them have ended, however they did.
  void await(const std::vector<std::string>& jobs) const;
  /// Of a job that is being requeued: until it has run again and ended.
  void await_second_run(const std::string& job) const;
  /// Until the file has so many lines with the word.
  void await_lines(const std::string& name, const std::string& word, int count) const;
  std::string output(const std::string& name) const;

 private:
  void until(const std::string& condition) const;
};

}  // namespace ddl::cluster
