// Distributes work items that mostly wait over several processes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ddl::runtime::test {

/// Calls work(i) for all i below items, in this number of forked children, each of which takes the next item when it
/// is done. Returns the results of work that are not empty. To be called while the process has one thread. Processes
/// that a work item leaves behind become children of the child, which kills them and reports it.
std::vector<std::string> run_in_workers(int children, std::size_t items,
                                        const std::function<std::string(std::size_t)>& work);

}  // namespace ddl::runtime::test
