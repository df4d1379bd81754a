// Many ranks in few words.
#pragma once

#include <string>
#include <vector>

namespace ddl::cli {

/// "0, 2-5, 7"; after the first dozen ranges "and 40 more". ranks are ascending.
std::string rank_ranges(const std::vector<int>& ranks);
/// "rank 3", "ranks 0, 2-5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace ddl::cli
