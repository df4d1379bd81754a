// An srun of ours, as far as it is an agent.
#pragma once

#include <string>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/piped_child.h"

namespace ddl::launcher {

class SrunProcess : public AgentProcess {
 public:
  /// path: of ddlrun on the nodes.
  SrunProcess(PipedChild child, std::string path) : child_(std::move(child)), path_(std::move(path)) {}

  std::string how_it_ended() override;
  StartFailure why_not_started(std::string_view noise, std::string_view errors) override;
  void clean_up(Deadline deadline) override { child_.end(deadline); }

 private:
  PipedChild child_;
  std::string path_;
};

}  // namespace ddl::launcher
