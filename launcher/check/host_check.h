// What --check-hosts learned of one host.
#pragma once

#include <optional>
#include <string>

#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

struct HostCheck {
  std::string name;                 ///< as the user wrote it
  std::optional<NodeFacts> facts;   ///< nullopt: no agent of ours runs there; failure says why
  std::string failure;              ///< one sentence, without the host's name
  double answer_seconds = 0;        ///< from the start of its agent to its facts
  double clock_offset_seconds = 0;  ///< its clock less this machine's; as exact as the way there is short
};

}  // namespace ddl::launcher
