#include "cluster/harness/job_folder.h"

#include <sys/stat.h>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::cluster {

JobFolder::JobFolder() { REQUIRE(::chmod(path().c_str(), 0777) == 0); }

JobFolder::CommandResult JobFolder::run(const std::vector<std::string>& words) const {
  const e2e::Scratch scratch;
  std::vector<std::string> argv = {"env", "-u",
                                   "TMPDIR"};  // that of the test does not exist on the job's nodes
  argv.insert(argv.end(), words.begin(), words.end());
  e2e::Command command = as_login(tested_login(), argv);
  command.directory = path();
  e2e::Job job(scratch, command);
  const int status = job.wait();
  return {status, job.out(), job.err()};
}

std::string JobFolder::checked_output(const std::vector<std::string>& words) const {
  const CommandResult result = run(words);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return result.out;
}

JobFolder::CommandResult JobFolder::slurm(const std::vector<std::string>& options,
                                          const std::vector<std::string>& command) const {
  std::vector<std::string> words = {e2e::ddlrun({}).argv.front(), "--slurm", "--time", "5"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return run(words);
}

std::string JobFolder::submit(const std::string& output, std::vector<std::string> options,
                              const std::vector<std::string>& command) const {
  options.insert(options.end(), {"--quiet", "--output", output, "--submit"});
  const CommandResult result = slurm(options, command);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return std::string(trim(result.out));
}

void JobFolder::wait_until(const std::string& condition) const {
  checked_output({"timeout", "60", "bash", "-c", "until " + condition + "; do sleep 0.05; done"});
}

void JobFolder::await(const std::vector<std::string>& jobs) const {
  // Not by sbatch --wait, which polls with increasing intervals, up to 10 s.
  wait_until("[ -z \"$(squeue -h -j " + join(jobs, ",") + " 2>/dev/null)\" ]");
}

void JobFolder::await_second_run(const std::string& job) const {
  wait_until("squeue -h -j " + job + " -o %r | grep -q BeginTime");
  // Slurm waits two minutes before it restarts the job, so that no node mistakes it for the previous run: its
  // credentials distinguish runs only by the second.
  checked_output({"scontrol", "update", "JobId=" + job, "StartTime=now+3"});
  await({job});
}

void JobFolder::await_lines(const std::string& name, const std::string& word, int count) const {
  wait_until("[ \"$(grep -c " + word + " " + name + " 2>/dev/null)\" = " + std::to_string(count) + " ]");
}

std::string JobFolder::output(const std::string& name) const { return e2e::bytes_of(path() + "/" + name); }

}  // namespace ddl::cluster
