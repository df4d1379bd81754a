#include "e2e/harness/elastic_job.h"

#include <filesystem>

#include "base/text.h"
#include "support/catch.h"

namespace ddl::e2e {

std::map<int, int> ElasticJob::pids(int generation, int size) {
  const std::string begin = "generation " + std::to_string(generation) + ": rank ";
  const std::string all = " of " + std::to_string(size) + ", local ";
  std::map<int, int> found;
  job_.wait_until("all ranks of generation " + std::to_string(generation), [&] {
    found.clear();
    for (const std::string_view line : split(job_.out(), '\n')) {
      const auto at = line.find(begin), size_at = line.find(all), pid_at = line.find("pid ");
      if (at == std::string_view::npos || size_at == std::string_view::npos) continue;
      found[std::stoi(std::string(line.substr(at + begin.size())))] =
          std::stoi(std::string(line.substr(pid_at + 4)));
    }
    return std::ssize(found) == size;
  });
  return found;
}

std::set<int> pid_set(const std::map<int, int>& pids) {
  std::set<int> set;
  for (const auto& [rank, pid] : pids) set.insert(pid);
  return set;
}

std::string loss_of_fit(const std::string& out) {
  const auto at = out.find("after 60000 steps the loss is ");
  REQUIRE(at != std::string::npos);
  return out.substr(at, out.find('\n', at) - at);
}

std::string fit_program() {
  return std::filesystem::path(ddlrun({}).argv.front()).parent_path() / "elastic_fit";
}

const std::string& undisturbed_loss() {
  static const std::string loss = [] {
    const Scratch scratch;
    Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", fit_program(), "60000"}));
    REQUIRE(job.wait_and_require_nothing_left() == 0);
    return loss_of_fit(job.out());
  }();
  return loss;
}

}  // namespace ddl::e2e
