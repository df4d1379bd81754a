// How ddlrun is asked to be an agent: by another ddlrun only.
#pragma once

namespace ddl::contract {

/// "ddlrun --agent NONCE": greets on standard output with the nonce, then speaks frames there and on standard input.
inline constexpr char kAgentOption[] = "--agent";

}  // namespace ddl::contract
