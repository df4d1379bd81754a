#include "launcher/fleet/srun/srun_starter.h"

#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "launcher/fleet/greeting.h"
#include "launcher/fleet/piped_child.h"
#include "launcher/fleet/srun/srun_command.h"
#include "launcher/fleet/srun/srun_process.h"

namespace ddl::launcher {
namespace {

class SrunStarter : public NodeStarter {
 public:
  SrunStarter(SlurmJob job, std::string path, const Environment& own)
      : job_(std::move(job)), path_(std::move(path)), environment_(srun_environment(own)) {}

  bool forks() const override { return false; }

  Result<StartedAgent> start(const AllocatedNode& node) override {
    auto nonce = make_nonce();
    if (!nonce) return fail(nonce.error());
    PipedChild::Streams streams;
    auto child = PipedChild::start(srun_command(job_, node, path_, *nonce), environment_, streams);
    if (!child) {
      return fail(child.error().code(),
                  child.error().message() +
                      "; Slurm's own commands must be in PATH, or choose --launcher ssh or local");
    }
    return StartedAgent{std::move(streams.out), std::move(streams.in), std::move(streams.err),
                        *std::move(nonce), std::make_unique<SrunProcess>(*std::move(child), path_)};
  }

 private:
  SlurmJob job_;
  std::string path_;
  Environment environment_;
};

}  // namespace

bool has_srun(const Environment& own) {
  const auto path = own.find("PATH");
  return path != own.end() && find_in_path("srun", path->second).has_value();
}

std::unique_ptr<NodeStarter> make_srun_starter(SlurmJob job, std::string path, const Environment& own) {
  return std::make_unique<SrunStarter>(std::move(job), std::move(path), own);
}

}  // namespace ddl::launcher
