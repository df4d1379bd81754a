// How ddlrun is asked to be an agent: by another ddlrun only.
#pragma once

namespace ddl::contract {

/// "ddlrun --agent NONCE": greets on standard output with the nonce, then speaks frames there and on standard input.
inline constexpr char kAgentOption[] = "--agent";

/// "ddlrun --joining-agent NONCE": reads on standard input whom to join, connects, and then does the same over that.
inline constexpr char kJoiningAgentOption[] = "--joining-agent";

}  // namespace ddl::contract
