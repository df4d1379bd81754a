// Work that mostly waits, done by several processes at once.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ddl::runtime::test {

/// Calls work(i) for all i below items, in so many forked children, each of which takes the next one when it is done.
/// Returns what work returned where that is not empty. To be called while the process has one thread. Whatever
/// processes a piece of work leaves behind become children of the child; it kills them and says so.
std::vector<std::string> run_in_crew(int children, std::size_t items,
                                     const std::function<std::string(std::size_t)>& work);

}  // namespace ddl::runtime::test
