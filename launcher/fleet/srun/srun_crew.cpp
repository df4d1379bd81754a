#include "launcher/fleet/srun/srun_crew.h"

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/fleet/piped_child.h"
#include "launcher/fleet/srun/srun_command.h"
#include "launcher/fleet/srun/srun_process.h"

namespace ddl::launcher {
namespace {

class SrunCrewStarter : public CrewStarter {
 public:
  SrunCrewStarter(SlurmJob job, std::string path, const Environment& own)
      : job_(std::move(job)), path_(std::move(path)), environment_(srun_environment(own)) {}

  Result<std::vector<StartedCrew>> start(const std::vector<AllocatedNode>& nodes,
                                         const std::string& nonce) override {
    std::map<std::pair<int, int>, std::vector<std::size_t>> alike;  // by CPUs and GPUs
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto own = std::find_if(job_.nodes.begin(), job_.nodes.end(),
                                    [&](const SlurmNode& one) { return one.name == nodes[i].name; });
      alike[own == job_.nodes.end() ? std::pair(0, 0) : std::pair(own->cpus, own->gpus)].push_back(i);
    }
    std::vector<StartedCrew> crews;
    for (auto& [has, members] : alike) {
      std::vector<std::string> names;
      for (const std::size_t member : members) names.push_back(nodes[member].name);
      PipedChild::Streams streams;
      auto child = PipedChild::start(srun_crew_command(job_, names, path_, nonce), environment_, streams);
      if (!child) return fail(child.error());
      crews.push_back({std::move(members), std::move(streams.in), std::move(streams.out),
                       std::move(streams.err), std::make_unique<SrunProcess>(*std::move(child), path_)});
    }
    return crews;
  }

 private:
  SlurmJob job_;
  std::string path_;
  Environment environment_;
};

}  // namespace

std::unique_ptr<CrewStarter> make_srun_crew_starter(SlurmJob job, std::string path, const Environment& own) {
  return std::make_unique<SrunCrewStarter>(std::move(job), std::move(path), own);
}

}  // namespace ddl::launcher
