// A job of tests/e2e/programs/elastic_program.c, whose ranks go on when others fail.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "e2e/harness/job.h"

namespace ddl::e2e {

/// This machine under two names, which count as two hosts.
inline const std::vector<std::string> kTwoNames = {"-H", "localhost:2,127.0.0.1:2"};
/// So that no process is started in the place of one that has failed.
inline const std::vector<std::string> kNoOthers = {"--blacklist-cooldown-range", "3600", "3600"};
inline const std::vector<std::string> kOthersAtOnce = {"--blacklist-cooldown-range", "1", "1",
                                                       "--elastic-settle", "0"};

class ElasticJob {
 public:
  /// words: options of ddlrun. mode: of the program.
  explicit ElasticJob(const std::vector<std::string>& words, const std::string& mode = "")
      : job_(scratch_, ddlrun(words + std::vector<std::string>{program("elastic_program"), mode})) {}

  /// Of another program.
  explicit ElasticJob(const Command& command) : job_(scratch_, command) {}

  Job& job() { return job_; }
  const Scratch& scratch() const { return scratch_; }

  /// Waits until all ranks of a generation have said who they are. Their pids, by rank.
  std::map<int, int> pids(int generation, int size);

  /// Its ranks end after their next step.
  int stop() {
    scratch_.write("stop", "");
    return job_.wait_and_require_nothing_left();
  }

 private:
  Scratch scratch_;
  Job job_;
};

std::set<int> pid_set(const std::map<int, int>& pids);

/// examples/elastic/elastic_fit.cpp, what it prints at its end, and that of ranks that nothing happens to.
std::string fit_program();
std::string loss_of_fit(const std::string& out);
const std::string& undisturbed_loss();

}  // namespace ddl::e2e
