// The script with which docs/guide/frameworks.md begins, run as the guide says.
#include <cmath>
#include <sstream>

#include "e2e/harness/job.h"
#include "e2e/harness/scratch.h"
#include "frameworks/environment.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  const std::size_t after = from + begin.size();
  return text.substr(after, text.find(end, after) - after);
}

}  // namespace

TEST_CASE("the script of the guide to frameworks prints what the guide shows", "[guide]") {
  const auto python = python_of("torch");
  if (!python) return;
  const std::string guide = e2e::bytes_of(DDL_FRAMEWORKS_GUIDE);
  const e2e::Scratch scratch;
  // Its end is that of leave() in programs/problem.py.
  const std::string script =
      scratch.write("train.py", between(guide, "```python\n", "```\n") +
                                    "import os, sys\nsys.stdout.flush()\nos._exit(0)\n");
  e2e::Command command = e2e::ddlrun(
      {"-np", "2", "--oversubscribe", "-x", "TORCHINDUCTOR_CACHE_DIR=" + scratch.path(), *python, script});
  command.patience = std::chrono::seconds(240);
  e2e::Job job(scratch, command);
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  INFO(job.out());
  std::istringstream printed(job.out());
  std::istringstream shown(between(guide, "$ ddlrun -np 2 python train.py\n", "```\n"));
  std::string word, wanted;
  while (shown >> wanted) {
    REQUIRE(printed >> word);
    // A loss is not the same to the last digit on every processor.
    if (wanted.find('.') == std::string::npos) CHECK(word == wanted);
    if (wanted.find('.') != std::string::npos) CHECK(std::abs(std::stod(word) - std::stod(wanted)) < 0.05);
  }
  CHECK_FALSE(printed >> word);
}

}  // namespace ddl::frameworks
